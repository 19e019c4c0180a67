// Our client and what it asks real machines to do: snapshots, calls that end in a moment, and a configuration by every mode.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { ApplyConfigurationRequest_Mode as Mode, type ApplyConfiguration, MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { onlyMessage } from '../../src/adapters/talos/answer.ts'
import { type Calls, talosCalls } from '../../src/adapters/talos/calls.ts'
import { type TalosConnection, talosConnection } from '../../src/adapters/talos/connection.ts'
import { getResource } from '../../src/adapters/talos/cosi.ts'
import { resourceTypes } from '../../src/adapters/talos/resource-types.ts'
import { parseTalosconfig } from '../../src/adapters/talos/talosconfig.ts'
import { done, failed, ok, type Result } from '../../src/ports/fault.ts'
import { realClock } from '../scripted-talos.ts'
import { addresses, controlPlanes, longCall, officialTalosconfig, refused, talosconfig, valueOf } from './cluster.ts'

const worker = addresses['wk-1']

const open: { destroy: () => void }[] = []
function connect(text: string): TalosConnection {
  const connection = valueOf(talosConnection({ talosconfig: text, clock: realClock }))
  open.push(connection)
  return connection
}
/** The same wire without the port: for calls that nobody needs there yet. */
function callsWith(text: string): Calls {
  const config = parseTalosconfig(text, { now: new Date() })
  if (!config.ok) throw new Error(config.problem)
  const { notAfter, notBefore } = config.value
  const calls = talosCalls({ credential: config.value, credentialExpires: notAfter, credentialBegins: notBefore, clock: realClock })
  open.push(calls)
  return calls
}

let talos: TalosConnection
let calls: Calls
beforeAll(() => {
  talos = connect(officialTalosconfig())
  calls = callsWith(officialTalosconfig())
})
afterAll(() => {
  for (const connection of open) connection.destroy()
})

describe('a snapshot of a real etcd', () => {
  const download = async (connection: TalosConnection, address: string) => {
    const parts: Buffer[] = []
    const digest = await connection.snapshot(address, async bytes => (parts.push(Buffer.from(bytes)), done), longCall)
    return { digest, content: Buffer.concat(parts) }
  }
  const sha256 = (content: Buffer) => createHash('sha256').update(content)

  test('comes whole from every control plane, and its digest is that of what came', async () => {
    for (const address of controlPlanes) {
      const { digest, content } = await download(talos, address)
      expect(digest).toEqual({ ok: true, value: { bytes: content.length, sha256: sha256(content).digest('hex') } })
      // A database of bbolt, and the checksum of it.
      const [database, checksum] = [content.subarray(0, -32), content.subarray(-32)]
      expect(database.readUInt32LE(16)).toBe(0xed_0c_da_ed)
      expect(database.length % 4096).toBe(0)
      expect(sha256(database).digest()).toEqual(checksum)
    }
  })

  test('may be taken by who may only back up, and by nobody less', async () => {
    const [address] = controlPlanes as [string]
    const { digest, content } = await download(connect(await talosconfig({ role: 'os:etcd:backup' })), address)
    expect(valueOf(digest).bytes).toBe(content.length)
    for (const role of ['os:reader', 'os:nobody']) {
      const refusal = await download(connect(await talosconfig({ role })), address)
      expect(refusal.digest).toMatchObject(refused('forbidden', 'EtcdSnapshot', 'not authorized'))
      expect(refusal.content).toHaveLength(0)
    }
  })

  test('is not there on a worker, and ends where the sink wants no more', async () => {
    expect((await download(talos, worker)).digest).toMatchObject(refused('unsupported', 'only available on control plane nodes'))
    const full = failed('unknown', 'the disk is full')
    expect(await talos.snapshot(controlPlanes[0]!, async () => full, longCall)).toEqual(full)
  })
})

test('a database is defragmented, one member after the other, and serves on', async () => {
  for (const address of controlPlanes) {
    expect(await talos.defragment(address, longCall)).toEqual(done)
    expect(await talos.disarmAlarms(address)).toEqual(done)
    const { status, alarms } = valueOf(await talos.etcd(address))
    expect(status.errors).toEqual([])
    expect(alarms).toEqual([])
    // As good as nothing is left free.
    expect(status.dbSize - status.dbSizeInUse).toBeLessThan(0.2 * status.dbSize)
  }
  expect(await talos.defragment(worker, longCall)).toMatchObject(
    refused('unsupported', 'EtcdDefragment', 'only available on control plane nodes'),
  )
  const reader = connect(await talosconfig({ role: 'os:reader' }))
  expect(await reader.defragment(controlPlanes[0]!, longCall)).toMatchObject(refused('forbidden', 'not authorized'))
})

test('a member that there is not is gone already, and a worker removes none', async () => {
  expect(await talos.removeMember(controlPlanes[0]!, '1234567890abcdef')).toEqual(done)
  expect(await talos.removeMember(worker, '1234567890abcdef')).toMatchObject(refused('unsupported'))
  expect(await talos.leaveEtcd(worker, longCall)).toMatchObject(refused('unsupported'))
})

test('kubelet starts again where it is asked to, and what Talos keeps running does not', async () => {
  const before = valueOf(await talos.machine(worker))
  const kubelet = async () => valueOf(await talos.service(worker, 'kubelet'))!
  const { startedAt = Infinity } = await kubelet()
  expect(await talos.restartService(worker, 'kubelet')).toEqual(done)
  await vi.waitFor(
    async () => {
      const now = await kubelet()
      expect(now).toMatchObject({ state: 'Running', health: 'healthy' })
      expect(now.startedAt).not.toBe(startedAt)
      expect(valueOf(await talos.machine(worker))).toEqual(before)
    },
    { timeout: 40_000, interval: 500 },
  )

  for (const id of ['machined', 'apid', 'containerd', 'cri'])
    expect(await talos.restartService(worker, id)).toMatchObject(refused('unsupported', `"${id}" doesn't support restart`))
  expect(await talos.restartService(controlPlanes[0]!, 'etcd')).toMatchObject(refused('unsupported', 'etcd'))
  expect(await talos.restartService(worker, 'nosuch')).toMatchObject(refused('notFound', 'nosuch'))
  expect(await talos.service(worker, 'nosuch')).toEqual(ok(undefined))
  const reader = connect(await talosconfig({ role: 'os:reader' }))
  expect(await reader.restartService(worker, 'kubelet')).toMatchObject(refused('forbidden', 'not authorized'))
  expect(valueOf(await talos.machine(controlPlanes[0]!))).toMatchObject({ stage: 'running', ready: true })
})

test('a container does not shut down, and in maintenance there is nobody', async () => {
  expect(await talos.shutdown(worker, { force: true })).toMatchObject(refused('precondition', 'Shutdown', 'container mode'))
  expect(await talos.maintenance(addresses.nobody)).toMatchObject(refused('unreachable'))
})

describe('a configuration, by every mode', () => {
  type Id = 'v1alpha1' | 'persistent'
  const find = async (id: Id): Promise<string | undefined> => {
    const resource = valueOf(await getResource(calls, worker, resourceTypes.machineConfig, id))
    return resource && Buffer.from(resource.spec.yamlMarshalled).toString()
  }
  const read = async (id: Id): Promise<string> => {
    const text = await find(id)
    if (text === undefined) throw new Error(`no configuration ${id}`)
    return text
  }
  const apply = async (
    text: string,
    mode: Mode,
    more: { dryRun?: boolean; seconds?: number } = {},
  ): Promise<Result<ApplyConfiguration>> => {
    const { dryRun = false, seconds = 60 } = more
    const answer = await calls.unary(
      worker,
      MachineService.method.applyConfiguration,
      { data: Buffer.from(text), mode, dryRun, tryModeTimeout: { seconds: BigInt(seconds), nanos: 0 } },
      { deadlineMs: 30_000 },
    )
    return answer.ok ? onlyMessage(worker, 'ApplyConfiguration', answer.value.messages) : answer
  }
  /** The configuration with more under `machine`. */
  const withMachine = (text: string, more: Record<string, unknown>): string => {
    const documents = parseAllDocuments(text)
    for (const document of documents)
      for (const [key, value] of Object.entries(more)) if (document.has('machine')) document.setIn(['machine', key], value)
    return documents.join('')
  }
  const labelled = (text: string, value: string): string => withMachine(text, { nodeLabels: { 'example.org/asked': value } })
  const label = async (): Promise<string> =>
    (await promisify(execFile)('kubectl', ['get', 'node', 'wk-1', '-o', 'jsonpath={.metadata.labels.example\\.org/asked}'])).stdout
  const isSoon = (what: () => Promise<string>, value: string) =>
    vi.waitFor(async () => expect(await what()).toBe(value), { timeout: 30_000, interval: 300 })

  let original: string
  beforeAll(async () => {
    original = await read('v1alpha1')
    expect(await read('persistent')).toBe(original)
  })
  afterAll(async () => {
    valueOf(await apply(original, Mode.NO_REBOOT))
    expect(await read('persistent')).toBe(original)
  })

  test('a dry run tells what would be, and changes nothing', async () => {
    const changed = labelled(original, 'dry')
    const said = valueOf(await apply(changed, Mode.AUTO, { dryRun: true }))
    expect(said).toMatchObject({ mode: Mode.NO_REBOOT })
    expect(said.modeDetails).toMatch(/^Dry run summary:\nApplied configuration without a reboot \(skipped in dry-run\)\.\nConfig diff:/)
    expect(said.modeDetails).toContain('example.org/asked: dry')
    expect(await read('v1alpha1')).toBe(original)
    expect(await read('persistent')).toBe(original)
  })

  test('auto and no-reboot take effect at once, on the Node too', async () => {
    expect(valueOf(await apply(labelled(original, 'auto'), Mode.AUTO))).toMatchObject({ mode: Mode.NO_REBOOT })
    await isSoon(label, 'auto')
    const changed = labelled(original, 'no-reboot')
    expect(valueOf(await apply(changed, Mode.NO_REBOOT))).toMatchObject({ mode: Mode.NO_REBOOT, warnings: [] })
    await isSoon(label, 'no-reboot')
    for (const id of ['v1alpha1', 'persistent'] as const) expect(await read(id)).toBe(changed)
  })

  test('staged waits for a boot: until then nothing runs with it', async () => {
    const before = await read('v1alpha1')
    const changed = labelled(original, 'staged')
    expect(valueOf(await apply(changed, Mode.STAGED))).toMatchObject({ mode: Mode.STAGED })
    expect(await read('persistent')).toBe(changed)
    expect(await read('v1alpha1')).toBe(before)
    expect(await talos.setInstallImage(worker, 'example.org/installer:v1.12.2')).toMatchObject(refused('precondition', 'is staged there'))
    // Whoever applies at once takes what is staged with it.
    valueOf(await apply(before, Mode.NO_REBOOT))
    expect(await read('persistent')).toBe(before)
  })

  test('a trial runs and is not kept, and goes back by itself', async () => {
    const before = await read('v1alpha1')
    const changed = labelled(original, 'tried')
    const said = valueOf(await apply(changed, Mode.TRY, { seconds: 8 }))
    expect(said).toMatchObject({ mode: Mode.TRY, modeDetails: expect.stringContaining('automatically reverted back in 8s') as string })
    expect(await read('v1alpha1')).toBe(changed)
    expect(await read('persistent')).toBe(before)
    await isSoon(label, 'tried')
    expect(await talos.setInstallImage(worker, 'example.org/installer:v1.12.2')).toMatchObject(refused('precondition', 'is on trial there'))
    await isSoon(() => read('v1alpha1'), before)
    await isSoon(label, 'no-reboot')
  })

  test('what needs a reboot is refused at once, and without a word of the secrets in it', async () => {
    const changed = withMachine(original, { env: { EXAMPLE: 'one' } })
    for (const mode of [Mode.NO_REBOOT, Mode.TRY])
      expect(await apply(changed, mode)).toMatchObject(refused('invalid', 'ApplyConfiguration', "can't be applied in immediate mode"))
    expect(valueOf(await apply(changed, Mode.AUTO, { dryRun: true }))).toMatchObject({ mode: Mode.REBOOT })
    const secret = /^ *token: (\S+)$/m.exec(original)![1]!
    const wrong = await apply(original.replace(/^debug: .*$/m, 'nosuch: true'), Mode.AUTO)
    expect(wrong).toMatchObject(refused('invalid', 'unknown keys found during decoding'))
    expect(JSON.stringify([wrong, await apply(changed, Mode.NO_REBOOT)])).not.toContain(secret)
    expect(valueOf(await talos.machine(worker))).toMatchObject({ stage: 'running', ready: true })
  })

  test('who may not, may not', async () => {
    for (const role of ['os:reader', 'os:operator', 'os:etcd:backup']) {
      const others = callsWith(await talosconfig({ role }))
      const data = Buffer.from(original)
      expect(await others.unary(worker, MachineService.method.applyConfiguration, { data, mode: Mode.AUTO })).toMatchObject(
        refused('forbidden', 'not authorized'),
      )
    }
  })

  test('with a reboot, and auto where one is needed: the machine boots into it', async () => {
    for (const mode of [Mode.REBOOT, Mode.AUTO]) {
      const before = valueOf(await talos.machine(worker))
      const changed = withMachine(original, { env: { EXAMPLE: String(mode) } })
      expect(valueOf(await apply(changed, mode))).toMatchObject({ mode: Mode.REBOOT })
      await vi.waitFor(
        async () => {
          const { bootID, ...facts } = valueOf(await talos.machine(worker))
          expect(bootID).not.toBe(before.bootID)
          expect(facts).toMatchObject({ stage: 'running', ready: true })
        },
        { timeout: 120_000, interval: 500 },
      )
      expect(await read('v1alpha1')).toBe(changed)
      // There is one again when the next configuration is applied.
      expect(await find('persistent')).toBe(undefined)
    }
    valueOf(await apply(original, Mode.REBOOT))
    await vi.waitFor(async () => expect(await read('v1alpha1')).toBe(original), { timeout: 120_000, interval: 500 })
    await vi.waitFor(async () => expect(valueOf(await talos.machine(worker))).toMatchObject({ stage: 'running', ready: true }), {
      timeout: 120_000,
      interval: 500,
    })
  }, 400_000)
})
