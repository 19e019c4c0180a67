import type { Clock } from '../ports/clock.ts'

export type Itself = Clock
