import { steps } from '../talos/steps.ts'

export const itself = steps
