import type { ProgramConfig } from './kubernetes-config.ts'
import { imageVersion } from './kubernetes-config.ts'
import words from './kubernetes-words.json' with { type: 'json' }

/**
 * Names of flags and feature gates that some kube-apiserver, kube-controller-manager or kube-scheduler of the minors 1.29 to 1.36 knows: read off
 * the sources that register them (k8s.io/kubernetes v1.36.2 and the modules that it is made of), and what the compatibility table says is gone. What
 * is not among them no version knows; of which version knows which nothing is said here.
 */
const FLAGS: ReadonlySet<string> = new Set(words.flags)
const GATES: ReadonlySet<string> = new Set(words.featureGates)

const minorOf = (image: string): number => Number(/^v1\.(\d+)\./.exec(imageVersion(image))?.[1] ?? Infinity)

/** What a program writes, before it ends, of the first of its arguments that no version knows; undefined where there is none. */
export const unknownOption = ({ image, extraArgs }: ProgramConfig): string | undefined => {
  if (minorOf(image) > words.newestMinor) return undefined
  const flag = Object.keys(extraArgs).find(name => !FLAGS.has(name))
  if (flag !== undefined) return `Error: unknown flag: --${flag}`
  const gates = extraArgs['feature-gates'] ?? ''
  const gate = gates.split(',').find(one => one.trim() !== '' && !GATES.has(one.split('=')[0]?.trim() ?? ''))
  return gate === undefined
    ? undefined
    : `Error: invalid argument "${gates}" for "--feature-gates" flag: unrecognized feature gate: ${gate.split('=')[0]?.trim()}`
}
