import { renderingOf } from '../../api/rendering.ts'
import type { ComponentCalls, MachineComponents, StaticPodFacts } from '../../ports/components.ts'
import { pendingText } from '../../ports/configuration.ts'
import { done, failed, ok } from '../../ports/fault.ts'
import { withImageOf } from '../component-images.ts'
import { setConfig, toldPendingOf } from '../configuration.ts'
import { pullImage } from '../install.ts'
import { COMPONENTS, kubernetesConfigOf } from '../kubernetes-config.ts'
import type { Machine } from '../machine.ts'
import { versionOf } from '../machine.ts'
import { bootstrapManifests } from '../manifests.ts'
import { isAtLeast } from '../releases.ts'
import type { Site } from '../site.ts'
import type { StaticPod } from '../static-pods.ts'
import { lastWordsOf, renderedAnnotationsOf, renderingsOf } from '../static-pods.ts'
import type { Caller } from './caller.ts'

const toldOf = ({ isRunning, restarts, waiting }: StaticPod): NonNullable<StaticPodFacts['told']> => ({
  ready: isRunning,
  restarts,
  ...(waiting ? { waiting } : {}),
})

const componentsOf = (site: Site, machine: Machine): MachineComponents => {
  const config = kubernetesConfigOf(site, machine)
  const renderings = renderingsOf(machine)
  const { image: running } = machine.kubeletRun
  return {
    kubelet: {
      image: config.kubelet.image,
      ...(machine.kubelet && running !== '' && isAtLeast(versionOf(machine), 1, 14) ? { running } : {}),
    },
    staticPods: Object.fromEntries(
      COMPONENTS.flatMap(name => {
        const component = config.components.get(name)
        if (!component) return []
        const [rendering, pod] = [renderings.get(name), machine.kubelet ? machine.pods.get(name) : undefined]
        const facts: StaticPodFacts = {
          image: component.image,
          ...(rendering
            ? {
                rendered: {
                  image: rendering.image,
                  configVersion: renderingOf(renderedAnnotationsOf(name, rendering)),
                  isProbed: name !== 'kube-apiserver',
                },
              }
            : {}),
          ...(pod ? { told: toldOf(pod) } : {}),
        }
        return [[name, facts]]
      }),
    ),
    ...(config.kubeProxy === undefined ? {} : { kubeProxy: config.kubeProxy }),
  }
}

/** The programs of Kubernetes, through the world's Talos port. */
export const componentCalls = (site: Site, { call, long, applied }: Caller): ComponentCalls => ({
  components: address => call(address, 'components', 'os:admin', false, machine => ok(componentsOf(site, machine))),
  manifests: address =>
    call(address, 'manifests', 'os:reader', false, machine =>
      machine.role === 'controlplane' ? ok(bootstrapManifests(site, machine).flatMap(({ objects }) => objects)) : ok([]),
    ),
  setComponentImage: (address, component, image) =>
    call(address, 'setComponentImage', 'os:admin', true, machine => {
      const text = withImageOf(machine.config, component, image)
      if (text === machine.config) return done
      const pending = toldPendingOf(machine)
      if (pending) return failed('precondition', `${address}: setComponentImage: ${pendingText(pending)}`)
      return applied(machine, address, 'setComponentImage', () => {
        // Somebody may have written it meanwhile.
        setConfig(site, machine, withImageOf(machine.config, component, image))
      })
    }),
  pullForPods: (address, image, options) =>
    call(address, 'pullForPods', 'os:operator', true, machine =>
      long(address, 'pullForPods', options, ends => pullImage(site, machine, image, ends)),
    ),
  lastWords: (address, component) =>
    call(address, 'lastWords', 'os:reader', false, machine => {
      const words = lastWordsOf(site, machine, component)
      return ok(words === undefined ? [] : [words])
    }),
})
