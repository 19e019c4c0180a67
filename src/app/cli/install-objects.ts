import { startRights } from '../../api/start-rights.ts'
import { toCrd } from '../../api/structural.ts'
import { DEFAULTS } from '../../install/controller.ts'
import { type Installation, installation, marked } from '../../install/installation.ts'
import { kinds } from '../../kinds/registry.ts'
import { resources } from '../resources.ts'
import type { KubeObject } from './api.ts'

/** The CRDs of this version, in the order in which they are installed. */
export const crds = (): readonly KubeObject[] => resources().map(definition => toCrd(definition) as KubeObject)

/** What can be chosen of an installation from the command line. */
export type Wanted = Omit<Installation, 'controller'> & {
  readonly controller: { readonly image: string; readonly replicas?: number } | { readonly user: string }
}

/** Who writes with `ichor install`, on each of its objects. */
export const INSTALLER = 'ichor'

/** Everything else that is installed, in its order, with the marks of whose it is. */
export const installed = ({ controller, ...wanted }: Wanted): readonly KubeObject[] =>
  marked(installation(startRights(kinds), { ...wanted, controller: 'user' in controller ? controller : { ...DEFAULTS, ...controller } }), {
    manager: INSTALLER,
    instance: wanted.namespace,
  }) as readonly KubeObject[]
