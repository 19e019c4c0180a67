import type { Sabotage } from '../spoiling.ts'
import { core } from './core.ts'
import { engine } from './engine.ts'
import { kinds } from './kinds.ts'
import { machineSteps } from './machine-steps.ts'
import { stopping } from './stopping.ts'

export const sabotages: readonly Sabotage[] = [...core, ...machineSteps, ...engine, ...kinds, ...stopping]
