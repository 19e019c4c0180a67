import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { ask } from './ask.ts'

describe('a question', () => {
  const typedTo = async (keys: string): Promise<{ readonly answer: string; readonly shown: string }> => {
    const input = new PassThrough()
    const output = Object.assign(new PassThrough(), { isTTY: true, columns: 80 })
    const answer = ask('Stop it? [y/N] ', input, output)
    input.write(keys)
    return { answer: await answer, shown: String(output.read()) }
  }

  it('is answered by the line that is typed', async () => {
    expect((await typedTo('yes\r')).answer).toBe('yes')
  })

  it.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-C behind a yes', 'y\x03'],
    ['Ctrl-D', '\x04'],
  ])('is answered with nothing by %s, and its line is ended', async (_, keys) => {
    const { answer, shown } = await typedTo(keys)
    expect(answer).toBe('')
    expect(shown.endsWith('\n')).toBe(true)
  })
})
