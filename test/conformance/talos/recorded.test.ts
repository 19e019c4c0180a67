// The simulated machines have to answer talosctl as real ones did: what those said is in test/realtalos/recorded.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTalosCa } from '../../../src/adapters/pki/talos-pki.ts'
import { type KubernetesSide, simulatedKubernetes } from '../../../src/app/demo/kubernetes.ts'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { realPart } from '../../real/parts.ts'
import { ask, configsOf, kubernetesVersion, type Place, recordedAnswers, SIMULATED, talosVersion, written } from './answers.ts'
import { commands, type Person } from './commands.ts'

const part = await realPart('talosctl')

const roles: Readonly<Record<Person, string>> = {
  admin: 'os:admin',
  operator: 'os:operator',
  reader: 'os:reader',
  backup: 'os:etcd:backup',
  foreign: 'os:admin',
  worker: 'os:admin',
}

describe.skipIf('missing' in part)('simulated machines answer talosctl as real ones', () => {
  let machines: Machines
  let kubernetes: KubernetesSide
  let place: Place
  const faults: unknown[] = []
  beforeAll(async () => {
    machines = await startMachines({
      ...{ seed: 5, controlPlanes: 3, workers: 1, speed: 1, clusterName: 'home', kubernetesAdmin: async () => kubernetes.admin },
      ...{ talos: talosVersion, kubernetes: kubernetesVersion, platform: 'container' },
      // Neither Talos' own network nor its proxy runs on the real machines.
      cilium: { version: '1.18.4' },
      durations: { pull: [200, 400] },
    })
    const home = await mkdtemp(join(tmpdir(), 'talosctl-'))
    // Their registry has what they run, and nothing newer.
    machines.world.registry.remove('kube-apiserver:v1.35.5')
    // What is asked of cp-2 meets a whole configuration there: keys that a worker must not have, and more than one document.
    const changed = machines.world.machine('cp-2')
    changed.config = `${changed.config
      .replace('    token: ""\n', '    token: ""\n    ca:\n        crt: ""\n        key: a2V5\n')
      .replace('cluster:\n', 'cluster:\n    ca:\n        crt: ""\n        key: a2V5\n    etcd: {}\n')}---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp-2
`
    kubernetes = await simulatedKubernetes(machines.world, home, error => faults.push(error))
    const foreign = await createTalosCa({ from: new Date(Date.now() - 3_600_000) })
    const configs = await configsOf(
      person =>
        machines.talosconfig({
          roles: [roles[person]],
          ...(person === 'foreign' ? { signedBy: foreign } : {}),
          ...(person === 'worker' ? { endpoints: [machines.address(3)] } : {}),
        }),
      home,
    )
    const addresses = { 'cp-1': machines.address(0), 'cp-2': machines.address(1), 'cp-3': machines.address(2), 'wk-1': machines.address(3) }
    const nobody = machines.address(0).replace(/\.\d+$/, '.99')
    place = { talosctl: 'path' in part ? part.path : '', home, configs, addresses: { ...addresses, nobody } }
  })
  afterAll(async () => {
    await kubernetes.close()
    await machines.close()
    expect(faults).toEqual([])
    await rm(place.home, { recursive: true, force: true })
  })

  test('each command has an answer', () => {
    for (const [topic, list] of Object.entries(commands)) expect(recordedAnswers(topic)).toHaveLength(list.length)
  })

  describe.for(Object.entries(commands))('%s', ([topic, list]) => {
    const recorded = recordedAnswers(topic)

    // What changes something is done in order.
    const testAll = topic === 'configuration' ? test : test.concurrent
    testAll.for(list.map((command, at) => ({ ...command, at })))('$at $run', { timeout: 60_000 }, async ({ at, ...command }, { task }) => {
      const own = written(command, await ask(place, command))
      const real = recorded[at] ?? 'not recorded'
      const agrees = command.some ? own.split('\n').every(line => real.split('\n').includes(line)) : own === real
      task.meta.answer = { of: SIMULATED, agrees }
      if (command.apart !== undefined) expect(agrees, 'agrees now: take its reason away').toBe(false)
      else if (!agrees) expect(own).toBe(real)
    })
  })
})
