import type { Readable, Writable } from 'node:stream'

/** What was typed to `question`; nothing where the prompt was left by Ctrl-C or Ctrl-D, which is no yes to anything. */
export const ask = async (question: string, input: Readable, output: Writable): Promise<string> => {
  // Slow to load, and seldom needed.
  const { createInterface } = await import('node:readline/promises')
  const prompt = createInterface({ input, output })
  try {
    return await prompt.question(question)
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error
    // What is said next stands on a line of its own.
    output.write('\n')
    return ''
  } finally {
    prompt.close()
  }
}
