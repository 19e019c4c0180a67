import { apiServer, ownCertificates, ownClock } from './api-server.ts'
import { controllerSilence, deployment, leader } from './controller.ts'
import { crds } from './crds.ts'
import { place, whereInstalled } from './installation.ts'
import type { InstallationSight } from './installation-sight.ts'
import type { Look } from './look.ts'
import { controllerRights, ownRights, policies } from './rights.ts'

export { controllerSilence }

/** All that is looked at in an installation, in the order in which it is told. */
export const installationLooks: readonly Look<InstallationSight>[] = [
  apiServer,
  ownClock,
  ownCertificates,
  place,
  whereInstalled(crds),
  whereInstalled(policies),
  ownRights,
  whereInstalled(controllerRights),
  whereInstalled(deployment),
  whereInstalled(leader),
]
