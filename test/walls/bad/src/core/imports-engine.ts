import { queue } from '../engine/queue.ts'

export const itself = queue
