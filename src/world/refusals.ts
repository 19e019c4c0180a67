import { refuse } from './answer.ts'

/** What a container can't do to its host. */
export const notInContainer = refuse('FailedPrecondition', 'method is not supported in container mode')
