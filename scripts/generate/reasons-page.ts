import { REASONS } from '../../src/api/reasons.ts'
import type { Files } from './files.ts'
import { code, generatedFrom, page } from './markdown.ts'

export const reasonsPath = 'docs/reference/reasons.md'

/** Each reason with its sentence, as a heading, so that a message can link to it. `usedBy` says which steps fail with it. */
export const reasonsPage = (usedBy: (reason: string) => readonly string[]): Files =>
  new Map([
    [
      reasonsPath,
      page(
        generatedFrom('src/api/reasons.ts'),
        '# Why an operation does not advance',
        `The values of ${code('status.failureReason')}: a closed list. Where it is empty and the phase is Paused, an operator paused the operation.`,
        `After the cause is removed, ${code('ichor operation resume NAME')} runs the failed step again.`,
        ...Object.entries(REASONS).flatMap(([reason, sentence]) => {
          const steps = usedBy(reason)
          return [`## ${reason}`, sentence, ...(steps.length === 0 ? [] : [`Given by: ${steps.join(', ')}.`])]
        }),
      ),
    ],
  ])
