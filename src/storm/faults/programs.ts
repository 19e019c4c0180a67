import { pendingOf, setConfig, stageConfig } from '../../world/configuration.ts'
import { beginKubelet } from '../../world/kubelet.ts'
import { answers } from '../../world/machine.ts'
import { RESOURCE, change } from '../../world/objects.ts'
import { leaveBehind } from '../oddities.ts'
import type { Trouble } from '../plan.ts'
import { machinesOf } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** What others do to the programs of Kubernetes while these are upgraded. */

const LOST = ['kube-apiserver', 'kube-scheduler', 'kubelet', 'kubelet'] as const
const WHATS = [
  ...LOST.map(name => `${name} is in no registry` as const),
  ...(['kube-proxy is edited', 'kube-proxy is edited', 'kube-proxy is deleted', 'kube-proxy is switched off'] as const),
  ...(['an object is left behind', 'an object is left behind', 'CoreDNS is away', 'a probe fails', 'a configuration is staged'] as const),
]

const PROXY = ['kube-system', 'kube-proxy'] as const

export const programs: Trouble<Stage> = {
  family: 'programs',
  harmless: false,
  draw: ({ random, shape, horizonMs, calls }) => ({
    family: 'programs',
    what: random.pick(WHATS),
    when: random.chance(0.6) ? { call: random.between(1, calls) } : { at: random.between(0, horizonMs) },
    machine: random.between(0, machinesOf(shape) - 1),
    forMs: random.between(5000, 200_000),
  }),
  strike: (stage, { what, machine: index }) => {
    const { world } = stage.story
    const { store, site } = world
    const machine = stage.machine(index)
    stage.note(`${what}, at ${machine.name}`)
    switch (what) {
      case 'kube-proxy is edited':
        stage.byHand(undefined, () =>
          change(store, RESOURCE.daemonSets, ...PROXY, now => {
            const spec = now['spec'] as { template: { spec: { containers: readonly object[] } } }
            const [first, ...others] = spec.template.spec.containers
            const containers = [{ ...first, image: 'registry.example.com/kube-proxy:v1.1.1' }, ...others]
            return { ...now, spec: { ...spec, template: { ...spec.template, spec: { ...spec.template.spec, containers } } } }
          }),
        )
        return
      case 'kube-proxy is deleted':
        stage.byHand(undefined, () => store.remove(RESOURCE.daemonSets, ...PROXY))
        return
      case 'kube-proxy is switched off': {
        if (!answers(machine) || machine.role !== 'controlplane' || /^ {4}proxy:$/m.test(machine.config)) return
        const before = machine.config
        const text = before.replace(/^cluster:$/m, 'cluster:\n    proxy:\n        disabled: true')
        stage.byHand(machine, () => setConfig(site, machine, text))
        return () => {
          if (machine.config === text) stage.byHand(machine, () => setConfig(site, machine, before))
        }
      }
      case 'an object is left behind':
        stage.byHand(undefined, () => leaveBehind(world, 'left-lately'))
        return
      case 'CoreDNS is away':
        world.faults.coreDNS = { desired: 2, available: 0 }
        return () => void (world.faults.coreDNS = { desired: 2, available: 2 })
      case 'a probe fails': {
        const pod = store.list(RESOURCE.pods, 'kube-system').items.find(p => p.metadata.name === `kube-apiserver-${machine.name}`)
        if (!pod) return
        const say = (isProbed: boolean): void =>
          stage.byHand(undefined, () => {
            change(store, RESOURCE.pods, 'kube-system', pod.metadata.name, now => {
              if (now.metadata.uid !== pod.metadata.uid) return now
              const { containerStatuses = [] } = now.status as { containerStatuses?: readonly { readonly ready: boolean }[] }
              const isReady = isProbed && containerStatuses.every(({ ready }) => ready)
              return { ...now, status: { ...(now.status as object), conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] } }
            })
          })
        say(false)
        return () => say(true)
      }
      case 'a configuration is staged':
        if (answers(machine) && pendingOf(machine) === undefined)
          stage.byHand(machine, () => stageConfig(site, machine, machine.config.replace('wipe: false', 'wipe: true')))
        return
      default: {
        // And no machine has it any more: images that nobody uses are cleared away.
        const { version = '' } = (stage.plan.operations[0]?.spec['kubernetes'] ?? {}) as { version?: string }
        const image = `${what.split(' ')[0]}:${version}`
        world.registry.remove(image)
        for (const { programs: pulled } of world.machines) for (const one of pulled) if (one.endsWith(image)) pulled.delete(one)
        return () => {
          world.registry.restore(image)
          // A kubelet without an image is not begun anew by itself.
          for (const one of world.machines)
            if (answers(one) && one.services.get('kubelet')?.state === 'Failed') stage.byHand(one, () => beginKubelet(site, one))
        }
      }
    }
  },
}
