import { clock } from '../ports/clock.ts'

export const itself = clock
