// The same requests to kubesim and to a real kube-apiserver; both must answer what is written in golden/, which the real one said.
// RECORD_GOLDEN=1 writes it anew from the real server.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toCrd } from '../../../src/api/structural.ts'
import { createStore } from '../../../src/world/store.ts'
import type { RealKubeApiserver } from '../../real/kube-apiserver.ts'
import { startKubeApiserver } from '../../real/kube-apiserver.ts'
import { realParts } from '../../real/parts.ts'
import { objectCases } from './cases-objects.ts'
import { operationCases } from './cases-operations.ts'
import { patchCases } from './cases-patches.ts'
import { readingCases } from './cases-reading.ts'
import { servingCases } from './cases-serving.ts'
import { refusalCases } from './cases-refusals.ts'
import { ask, askUntil } from './client.ts'
import { resources } from './resources.ts'
import { play } from './scenario.ts'
import type { Simulated } from './simulated.ts'
import { startSimulated } from './simulated.ts'

const cases = [...objectCases, ...operationCases, ...patchCases, ...readingCases, ...servingCases, ...refusalCases]
const recording = process.env.RECORD_GOLDEN === '1'
const golden = (name: string): string => join(import.meta.dirname, 'golden', `${name.replaceAll(' ', '-')}.json`)
const expected = (name: string): unknown => JSON.parse(readFileSync(golden(name), 'utf8'))

const parts = await realParts('etcd', 'kube-apiserver')

describe.skipIf('missing' in parts)('the real kube-apiserver answers', () => {
  let server: RealKubeApiserver
  beforeAll(async () => {
    server = await startKubeApiserver()
    for (const definition of resources) {
      const made = await server.request({
        path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
        method: 'POST',
        body: toCrd(definition),
      })
      expect(made.status, JSON.stringify(made.body)).toBe(201)
      await askUntil(server, { path: `/apis/ichor.maesh.dev/v1alpha1/${definition.plural}` }, reply => reply.status === 200)
      await askUntil(
        server,
        { path: '/apis/ichor.maesh.dev/v1alpha1' },
        reply => reply.status === 200 && reply.body.resources.some((each: any) => each.name === definition.plural),
      )
    }
    mkdirSync(join(import.meta.dirname, 'golden'), { recursive: true })
  }, 120_000)
  afterAll(() => server?.stop())

  it.each(cases)(
    '$name',
    async scenario => {
      const steps = await play(scenario, server)
      if (recording) writeFileSync(golden(scenario.name), `${JSON.stringify(steps, null, 1)}\n`)
      else expect(steps).toEqual(expected(scenario.name))
    },
    60_000,
  )
})

describe('kubesim answers', () => {
  let server: Simulated
  beforeAll(async () => {
    server = await startSimulated(resources, { store: createStore({ now: Date.now, random: Math.random, history: 100 }) })
  })
  afterAll(() => server.stop())

  it('asks every rule of our resources', () => {
    expect(server.unaskedRules()).toEqual([])
  })

  it.each(cases)(
    '$name',
    async scenario => {
      const steps = await play(scenario, server)
      expect(steps).toEqual(expected(scenario.name))
    },
    60_000,
  )

  it('nobody without a credential', async () => {
    const reply = await ask({ ...server, tokens: { admin: 'x', viewer: 'x' } }, { path: '/api' })
    expect(reply.status).toBe(401)
  })
})
