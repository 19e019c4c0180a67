import type { Kind } from '../core/kind.ts'
import { config } from './config/config.ts'
import { kubernetes } from './kubernetes/kubernetes.ts'
import { node } from './node/node.ts'
import { talos } from './talos/talos.ts'

/** The kinds that are built. A new one is its own file, its test, and a line here. */
export const kinds: readonly Kind[] = [talos, kubernetes, config, node]
