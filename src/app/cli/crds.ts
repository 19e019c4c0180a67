import { toCrd } from '../../api/structural.ts'
import { resources } from '../resources.ts'
import type { KubeObject } from './api.ts'

/** The CRDs of this version, in the order in which they are installed. */
export const crds = (): readonly KubeObject[] => resources().map(definition => toCrd(definition) as KubeObject)
