import type { Checker } from '../checker.ts'
import {
  bootAsRecorded,
  heldIsLeft,
  installsOnce,
  intentionFirst,
  leaderActs,
  lockIsHeld,
  ownAddress,
  rebootsOnce,
  workersStay,
} from './acts.ts'
import { actionIsObserved } from './actions.ts'
import { othersAreWell } from './beside.ts'
import {
  controlPlanesFirst,
  etcdIsWhole,
  failureFreezes,
  gateIsFresh,
  oneAway,
  oneOpen,
  othersServe,
  outageIsAcknowledged,
} from './control-planes.ts'
import { allHaveTheVersion, nothingIsNewer, oneComponentAway } from './components.ts'
import { argumentsAreTaken, asComputed, canaryFirst, doneHasIt, patchedOnce, shownFirst } from './configuration.ts'
import { fairWeatherEnd, lockIsFree } from './end.ts'
import { oddEtcdIsHeeded } from './etcd-says.ts'
import { gatesHold } from './gates.ts'
import { deedsAreRemembered, lockIsNotStolen } from './lock.ts'
import { waitsForNoEvent } from './looks.ts'
import { pathIsLegal, snapshotIsTold } from './path.ts'
import { resetAsRecorded } from './reset.ts'
import { cordonsReturn, drainedFirst, evictedNotDeleted, foreignCordons } from './nodes.ts'
import { allAreAsked, stoppedGivesBack } from './stopping.ts'
import {
  closedWhenBack,
  doneIsDone,
  everyWaitHasWords,
  goneLeavesNothing,
  refusedIsUntouched,
  retriesOnce,
  sizesAreBounded,
  stoppedIsStill,
} from './status.ts'

import { retryTries } from './retries.ts'
import { plansOnlyRead, toldAsItIs } from './words.ts'

/** All that must hold in every run. */
export const checkers: readonly Checker[] = [
  oneAway,
  oneOpen,
  othersServe,
  othersAreWell,
  gateIsFresh,
  outageIsAcknowledged,
  etcdIsWhole,
  failureFreezes,
  controlPlanesFirst,
  intentionFirst,
  bootAsRecorded,
  rebootsOnce,
  installsOnce,
  lockIsHeld,
  leaderActs,
  ownAddress,
  heldIsLeft,
  workersStay,
  drainedFirst,
  evictedNotDeleted,
  foreignCordons,
  cordonsReturn,
  closedWhenBack,
  doneIsDone,
  actionIsObserved,
  everyWaitHasWords,
  sizesAreBounded,
  stoppedIsStill,
  retriesOnce,
  retryTries,
  refusedIsUntouched,
  goneLeavesNothing,
  lockIsNotStolen,
  deedsAreRemembered,
  gatesHold,
  oddEtcdIsHeeded,
  resetAsRecorded,
  nothingIsNewer,
  oneComponentAway,
  allHaveTheVersion,
  asComputed,
  patchedOnce,
  canaryFirst,
  shownFirst,
  argumentsAreTaken,
  doneHasIt,
  pathIsLegal,
  snapshotIsTold,
  waitsForNoEvent,
  allAreAsked,
  stoppedGivesBack,
  toldAsItIs,
  plansOnlyRead,
  fairWeatherEnd,
  lockIsFree,
]
