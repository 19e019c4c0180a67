// Real machines answer talosctl as it is recorded; with RECORD_TALOS=1 it is recorded anew. The simulated machines are held against the same.
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, type Place, recordAnswers, recordedAnswers, written } from '../conformance/talos/answers.ts'
import { commands } from '../conformance/talos/commands.ts'
import { realPlace } from './cluster.ts'

const isRecording = process.env.RECORD_TALOS === '1'

describe('real machines answer talosctl as recorded', () => {
  let place: Place
  beforeAll(async () => {
    place = await realPlace()
  })
  afterAll(() => rm(place.home, { recursive: true, force: true }))

  describe.each(Object.entries(commands))('%s', (topic, list) => {
    const recorded = isRecording ? [] : recordedAnswers(topic)
    const answers: string[] = []

    test.for(list.map((command, at) => ({ ...command, at })))('$at $run', async ({ at, ...command }, { task }) => {
      const answer = written(command, await ask(place, command))
      answers.push(answer)
      if (isRecording) return
      task.meta.answer = { of: 'real machines and talosctl, as recorded', agrees: answer === recorded[at] }
      expect(answer).toBe(recorded[at])
    })

    afterAll(() => {
      if (isRecording && answers.length === list.length) recordAnswers(topic, answers)
    })
  })
})
