import { imageTitle } from '../../core/component-image.ts'
import type { LongOutcome, Opening, PlannedMachine, Stage, Step } from '../../core/kind.ts'
import { YES, no, wait } from '../../core/kind.ts'
import { denied } from '../../core/machine-steps/guards.ts'
import { machineToOpen } from '../../core/machine-steps/opening.ts'
import { addressOf, chosen, controlPlanesOf } from '../../core/machine-steps/target.ts'
import { openTargets, receiptOf } from '../../core/ledger.ts'
import type { View } from '../../core/world.ts'
import { componentFacts, displayName } from '../../core/world.ts'
import type { Component } from '../../ports/components.ts'
import type { Result } from '../../ports/fault.ts'
import { imageToSet } from './set-image.ts'
import { STATIC_COMPONENTS, componentsNeed, componentsOf, goingOver, isThere, specOf } from './view.ts'

/** Every image comes to every machine before anything is changed: one that is missing then costs nothing. */

const PULL_MS = 20 * 60_000
/** Nothing is taken away from anybody; only registries and lines have to bear it. */
const AT_ONCE = 8
/** kube-proxy runs on all machines, but only control planes know its image. */
const PULLED: readonly Component[] = [...STATIC_COMPONENTS, 'kubelet', 'kube-proxy']

type Image = { readonly component: Component; readonly from: string; readonly image: string }

const imagesOf = (view: View): readonly (Image | { readonly instead: Opening })[] => {
  const [first] = controlPlanesOf(view.world)
  const known = first && componentFacts(view.world, first.metadata.name)
  const proxied = known?.ok ? known.value.kubeProxy : undefined
  return PULLED.flatMap((component): readonly (Image | { readonly instead: Opening })[] => {
    const asked = component === 'kube-proxy' && first ? { ...view, target: { ...view.target, name: first.metadata.name } } : view
    if (component === 'kube-proxy' && proxied === undefined) return []
    const image = imageToSet(asked, component)
    if (!('instead' in image)) return [{ component, ...image }]
    return 'skip' in image.instead ? [] : [image]
  })
}

const goalImages = ({ target }: Pick<View, 'target'>): readonly { readonly component: Component; readonly image: string }[] =>
  PULLED.flatMap(component => (chosen(target, component) === '' ? [] : [{ component, image: chosen(target, component) }]))

const pull: Step = {
  name: 'pull',
  summary: 'The machine pulls the images of the programs that it runs, all at once.',
  // Whoever reboots the machine meanwhile takes no image away from it.
  done: ({ target }) => (receiptOf(target, 'pull') ? YES : no('its images are not pulled yet')),
  guard: isThere,
  act: {
    long: true,
    disruptive: false,
    describe: view =>
      `pulling ${goalImages(view)
        .map(({ component }) => component)
        .join(', ')}`,
    run: async ({ talos }, view, call): Promise<Result<LongOutcome>> => {
      const pulled = await Promise.all(
        goalImages(view).map(({ component, image }) =>
          component === 'kubelet' ? talos.pull(addressOf(view), image, call) : talos.pullForPods(addressOf(view), image, call),
        ),
      )
      // One that is missing says more than one that was cut off.
      const faults = pulled.filter(one => !one.ok)
      const worst = faults.find(one => one.fault.kind === 'notFound') ?? faults[0]
      return worst ?? { ok: true, value: { receipt: `${pulled.length} images` } }
    },
    fatal: (fault, view) =>
      fault.kind === 'notFound'
        ? {
            reason: 'ImageNotFound',
            message: `${displayName(view.target)}: an image does not exist: ${fault.message}. Nothing was changed on any machine. Check the version and the registry, then resume.`,
          }
        : denied(fault, view),
  },
  deadlineMs: () => PULL_MS,
  failure: 'ImageNotFound',
}

const open = (view: View): Opening => {
  const found = machineToOpen(view)
  if ('instead' in found) return found.instead
  const components = componentsOf(view)
  if (!components.ok) return { wait: `it does not tell its components: ${components.fault.message}`, reason: 'MachineUnreachable' }
  if (found.facts.stage !== 'running') return { wait: `it is ${found.facts.stage}`, reason: 'MachineNotReady' }
  const wanted = imagesOf(view)
  const blocked = wanted.find(one => 'instead' in one)
  if (blocked) return blocked.instead
  const images = wanted.flatMap(one => ('instead' in one || one.from === one.image ? [] : [one]))
  if (images.length === 0) return { skip: `has all images of ${specOf(view.operation).version}` }
  return { open: { goal: { drain: 'none', ...Object.fromEntries(images.map(({ component, image }) => [component, image])) } } }
}

const preview = (view: View): PlannedMachine => {
  const { version } = specOf(view.operation)
  const components = componentsOf(view)
  if (!components.ok) return { from: 'unknown', to: version, loses: [] }
  return { from: imageTitle(components.value.kubelet.image), to: version, loses: [] }
}

export const pullStage: Stage = {
  name: 'pull',
  summary: 'Every machine pulls the images that it will run, before anything is changed.',
  ...goingOver({
    machines: world => world.machines,
    openNeeds: view => [
      ...componentsNeed(view),
      ...controlPlanesOf(view.world)
        .slice(0, 1)
        .map(m => ({ what: 'components', name: m.metadata.name }) as const),
    ],
    open,
  }),
  turn: ({ operation }) => (openTargets(operation.status).length < AT_ONCE ? YES : wait('other machines are pulling')),
  steps: [pull],
  abandon: [],
  preview,
  outcome: target => `pulled ${goalImages({ target }).length} images`,
}
