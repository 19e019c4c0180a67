import { imageTitle } from '../../core/component-image.ts'
import type { Opening, PlannedMachine, Stage } from '../../core/kind.ts'
import { controlPlanesOf } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import { imageChange, imageToSet, setImage } from './set-image.ts'
import { apiServersAreThere, componentsNeed, controlPlaneToOpen, goingOver, oneAtATime, specOf, versionsOf } from './view.ts'

const open = (view: View): Opening => {
  const found = controlPlaneToOpen(view)
  if ('instead' in found) return found.instead
  const wanted = imageToSet(view, 'kube-proxy')
  if ('instead' in wanted) return wanted.instead
  return wanted.from === wanted.image
    ? { skip: `its configuration has ${specOf(view.operation).version} already` }
    : { open: { goal: { ...wanted, drain: 'none' } } }
}

const preview = (view: View): PlannedMachine => {
  const change = imageChange(view, 'kube-proxy')
  return change === undefined
    ? { from: 'unknown', to: specOf(view.operation).version, loses: [] }
    : { from: imageTitle(change.from), to: change.to, loses: [] }
}

/** Only the bootstrap manifest of each control plane changes here; the pods follow when the manifests are applied. */
export const kubeProxyStage: Stage = {
  name: 'kube-proxy',
  summary:
    'The image of kube-proxy in the configuration of every control plane. Its pods are replaced in the last stage. Skipped where it is switched off.',
  ...goingOver({ machines: controlPlanesOf, openNeeds: componentsNeed, open }),
  turn: oneAtATime,
  steps: [setImage('kube-proxy', { guard: apiServersAreThere, guardNeeds: () => [{ what: 'controlPlane' }] })],
  abandon: [],
  preview,
  outcome: target => `kube-proxy ${versionsOf(target)}`,
}
