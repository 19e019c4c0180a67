import type { Opening, Step, Verdict } from '../../core/kind.ts'
import { no, unknown, YES } from '../../core/kind.ts'
import { imageTitle, withVersion } from '../../core/component-image.ts'
import { CALL_MS } from '../../core/machine-steps/coming-back.ts'
import { both, denied, since } from '../../core/machine-steps/guards.ts'
import { addressOf } from '../../core/machine-steps/target.ts'
import { versionOrder } from '../../core/versions.ts'
import type { Need, View } from '../../core/world.ts'
import { displayName } from '../../core/world.ts'
import type { Component, MachineComponents } from '../../ports/components.ts'
import { STATIC_COMPONENTS, componentsNeed, componentsOf, isThere, specOf, wantedImage } from './view.ts'

/** The one act of all stages that upgrade something: another image in the configuration of the machine, which Talos follows by itself. */

/** All that this kind sets the image of. */
export const COMPONENTS: readonly Component[] = ['kubelet', ...STATIC_COMPONENTS, 'kube-proxy']

/** As the configuration of the machine has it; undefined where the component is switched off. */
export const imageIn = (components: MachineComponents, component: Component): string | undefined => {
  if (component === 'kubelet') return components.kubelet.image
  if (component === 'kube-proxy') return components.kubeProxy
  return components.staticPods[component]?.image
}

/** What the image of a component becomes; or what follows where nothing is to be set, or nothing can be. */
export const imageToSet = (
  view: View,
  component: Component,
): { readonly from: string; readonly image: string } | { readonly instead: Opening } => {
  const { operation } = view
  const { version } = specOf(operation)
  const name = displayName(view.target)
  const components = componentsOf(view)
  if (!components.ok)
    return { instead: { wait: `it does not tell its components: ${components.fault.message}`, reason: 'MachineUnreachable' } }
  const from = imageIn(components.value, component)
  if (from === undefined) return { instead: { skip: `${component} is switched off` } }
  const image = withVersion(from, version)
  if (image === undefined) {
    const message = `${name}: the image of ${component} is ${from} by now, whose tag tells no version.`
    return { instead: { fail: { reason: 'ConfigChangedByOthers', message } } }
  }
  const runs = imageTitle(from)
  if (versionOrder(runs, version) === 1 && !operation.spec.override) {
    const message = `${name}: ${component} is ${runs} by now, which is newer than ${version}.`
    return { instead: { fail: { reason: 'VersionMismatch', message } } }
  }
  return { from, image }
}

/**
 * For the plan: the image of a component, and what it becomes, also where a check refuses just that. Undefined where it is not known, or the component is
 * switched off.
 */
export const imageChange = (view: View, component: Component): { readonly from: string; readonly to: string } | undefined => {
  const components = componentsOf(view)
  const from = components.ok ? imageIn(components.value, component) : undefined
  const { version } = specOf(view.operation)
  return from === undefined ? undefined : { from, to: withVersion(from, version) ?? version }
}

export const setImage = (
  component: Component,
  { guard, guardNeeds }: { readonly guard: (view: View) => Verdict; readonly guardNeeds: (view: View) => readonly Need[] },
): Step => ({
  name: 'set-image',
  summary: `Writes the image of ${component} into the machine configuration, without a reboot.`,
  needs: componentsNeed,
  done: view => {
    const components = componentsOf(view)
    if (!components.ok) return unknown(`it does not tell its components: ${components.fault.message}`)
    const image = imageIn(components.value, component)
    return image === wantedImage(view) ? YES : no(`its configuration names ${image ?? `no ${component}`}`)
  },
  guardNeeds,
  guard: view => both(isThere(view), () => guard(view)),
  act: {
    long: false,
    disruptive: true,
    describe: view => `setting ${component} to ${imageTitle(wantedImage(view))}`,
    run: ({ talos }, view) => talos.setComponentImage(addressOf(view), component, wantedImage(view)),
    fatal: (fault, view) =>
      fault.kind === 'invalid'
        ? { reason: 'ConfigRejected', message: `${displayName(view.target)}: ${fault.message}.` }
        : denied(fault, view),
  },
  settleMs: ({ world }) => 5 * world.timing.pollMs,
  deadlineMs: view => since(view, CALL_MS),
  failure: 'ConfigRejected',
  commits: true,
})
