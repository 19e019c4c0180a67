// The real talosctl ends machines and begins them anew: what it prints and how it ends is held against what Talos documents. Real machines in
// containers can do none of this, so there is nothing recorded to compare with.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Machine, versionOf } from '../../../src/world/machine.ts'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { countInvocations, hasTalosctl, talosctl } from './talosctl.ts'

countInvocations()

let home: string
let machines: Machines

type Asked = {
  /** Arguments, split at blanks. `@3` is the address of a machine by its index, `#file` one in the home folder. */
  readonly run: string
  /** Default 0. */
  readonly exit?: number
  /** What both outputs together have to say, in this order. */
  readonly says?: readonly string[]
  readonly never?: readonly string[]
  /** What has to be so afterwards, soon. */
  readonly leads?: () => void
}

const at = (index: number): Machine => machines.world.machine(index)
const isRunning = (index: number): void => {
  expect(at(index).stage).toBe('running')
  expect(machines.world.isUp(at(index))).toBe(true)
}

async function run(words: string): Promise<{ readonly code: number; readonly text: string }> {
  const args = words
    .split(' ')
    .map(word => word.replaceAll(/@(\d)/g, (_, index: string) => machines.address(Number(index))).replaceAll('#', `${home}/`))
  const { code, out, err } = await talosctl(home, args)
  return { code, text: out + err }
}

async function start(options: Parameters<typeof startMachines>[0]): Promise<void> {
  home = await mkdtemp(join(tmpdir(), 'talosctl-ends-'))
  machines = await startMachines(options)
  const write = (name: string, text: string) => writeFile(join(home, name), text)
  await write('admin', await machines.talosconfig())
  const worker = machines.world.machines.find(m => m.role === 'worker')!.config
  const controlPlane = machines.world.machine(0).config
  const below = (line: string, more: string) => worker.replace(`${line}\n`, `${line}\n${more}\n`)
  await write('worker.yaml', worker)
  await write('controlplane.yaml', controlPlane)
  await write('label.yaml', below('machine:', '    nodeLabels:\n        example.org/a: one'))
  await write('env.yaml', below('machine:', '    env:\n        EXAMPLE: one'))
  await write('field.yaml', below('machine:', '    nosuch: 1'))
  await write('endpoint.yaml', worker.replace(/endpoint: .*/, 'endpoint: ""'))
  await write('partial.yaml', 'apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: other\n')
}
async function stop(): Promise<void> {
  await machines.close()
  await rm(home, { recursive: true, force: true })
}

const inOrder = (text: string, parts: readonly string[]): string | undefined => {
  let from = 0
  for (const one of parts) {
    const found = text.indexOf(one, from)
    if (found < 0) return one
    from = found + one.length
  }
  return undefined
}

function askAll(asked: readonly Asked[]): void {
  test.for(asked.map((one, index) => ({ ...one, index })))('$index $run', { timeout: 100_000 }, async one => {
    const { code, text } = await run(one.run)
    expect({ text, code, missing: inOrder(text, one.says ?? []) }).toEqual({ text, code: one.exit ?? 0, missing: undefined })
    for (const never of one.never ?? []) expect(text).not.toContain(never)
    if (one.leads) await vi.waitFor(one.leads, { timeout: 60_000, interval: 50 })
  })
}

const refused = (code: string, text: string): Pick<Asked, 'exit' | 'says'> => ({
  exit: 1,
  says: [`rpc error: code = ${code} desc = ${text}`],
})
const dryRun = (details: string, ...diff: string[]): Pick<Asked, 'says'> => ({
  says: [
    `Dry run summary:\n${details} (skipped in dry-run).\nConfig diff:\n\n`,
    ...(diff.length > 0 ? ['--- a\n+++ b\n', ...diff] : ['No changes.']),
  ],
})
const WITHOUT = 'Applied configuration without a reboot'
const WITH = 'Applied configuration with a reboot'
const STAGED = 'Staged configuration to be applied after the next reboot'
const label = '+    nodeLabels:\n+        example.org/a: one\n'
const env = '+    env:\n+        EXAMPLE: one\n'
const notImmediate = refused('InvalidArgument', "this config change can't be applied in immediate mode\ndiff:\n--- a\n+++ b\n")
const noVolume = (name: string) =>
  refused(
    'Unknown',
    `failed to get volume status with label "${name}": resource VolumeStatuses.block.talos.dev(runtime/${name}@undefined) doesn't exist`,
  )
const wait = '--wait --timeout 80s'
const passed = ['post check passed']

describe.skipIf(!hasTalosctl)('machines of 1.12', () => {
  beforeAll(() =>
    start({
      ...{
        seed: 5,
        controlPlanes: 3,
        workers: 2,
        spares: 2,
        talos: 'v1.12.5',
        kubernetes: 'v1.34.2',
        speed: 40,
        durations: { reboot: [70_000, 80_000] },
        clusterName: 'home',
      },
      workloads: [{ name: 'web', on: [3], replicas: 2 }],
    }),
  )
  afterAll(stop)

  describe('META', () => {
    askAll([
      { run: '-n @3 meta write 0x0d note', leads: () => expect(at(3).disk.meta.get(0x0d)).toBe('note') },
      { run: '-n @3 get metakeys', says: ['0x0d', 'note'] },
      { run: '-n @3 meta write 0x0a network' },
      { run: '-n @3,@4 meta delete 0x0d', ...refused('NotFound', 'meta key not found') },
      { run: '-n @3 meta delete 0x0a', leads: () => expect([...at(3).disk.meta.keys()]).toEqual([]) },
    ])
  })

  describe('a configuration, dry', () => {
    const dry = '-n @3 apply-config --dry-run -f'
    askAll([
      { run: `${dry} #worker.yaml --mode auto`, ...dryRun(WITHOUT) },
      { run: `${dry} #worker.yaml --mode no-reboot`, ...dryRun(WITHOUT) },
      { run: `${dry} #worker.yaml --mode reboot`, ...dryRun(WITH) },
      { run: `${dry} #worker.yaml --mode staged`, ...dryRun(STAGED) },
      { run: `${dry} #worker.yaml --mode try`, ...dryRun(WITHOUT) },
      { run: `${dry} #label.yaml --mode auto`, ...dryRun(WITHOUT, label) },
      { run: `${dry} #label.yaml --mode no-reboot`, ...dryRun(WITHOUT, label) },
      { run: `${dry} #label.yaml --mode reboot`, ...dryRun(WITH, label) },
      { run: `${dry} #label.yaml --mode staged`, ...dryRun(STAGED, label) },
      { run: `${dry} #label.yaml --mode try`, ...dryRun(WITHOUT, label) },
      { run: `${dry} #env.yaml --mode auto`, ...dryRun(WITH, env) },
      { run: `${dry} #env.yaml --mode no-reboot`, ...notImmediate },
      { run: `${dry} #env.yaml --mode reboot`, ...dryRun(WITH, env) },
      { run: `${dry} #env.yaml --mode staged`, ...dryRun(STAGED, env) },
      { run: `${dry} #env.yaml --mode try`, ...notImmediate, leads: () => expect(at(3).config).not.toContain('EXAMPLE') },
    ])
  })

  describe('a configuration', () => {
    const apply = '-n @3 apply-config -f'
    const running = (text: string, has: boolean) => () => {
      if (has) expect(at(3).config).toContain(text)
      else expect(at(3).config).not.toContain(text)
    }
    askAll([
      { run: `${apply} #field.yaml`, ...refused('InvalidArgument', 'unknown keys found during decoding:\nmachine:\n    nosuch: 1\n') },
      {
        run: `${apply} #endpoint.yaml`,
        ...refused(
          'InvalidArgument',
          '1 error occurred:\n\t* v1alpha1.Config: 1 error occurred:\n\t* invalid controlplane endpoint: hostname must not be blank\n',
        ),
      },
      {
        run: `${apply} #partial.yaml`,
        ...refused(
          'InvalidArgument',
          "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?",
        ),
      },
      { run: `${apply} #env.yaml --mode no-reboot`, ...notImmediate },
      { run: `${apply} #env.yaml --mode try`, ...notImmediate },
      { run: `${apply} #worker.yaml --mode auto`, says: [WITHOUT] },
      { run: '-n @3 get mc', says: ['persistent   1', 'v1alpha1     1'] },
      { run: `${apply} #label.yaml --mode staged`, says: [STAGED], leads: running('example.org', false) },
      { run: '-n @3 get mc', says: ['persistent   2', 'v1alpha1     1'] },
      { run: `${apply} #worker.yaml --mode no-reboot`, says: [WITHOUT] },
      {
        run: `${apply} #label.yaml --mode try --timeout 2m`,
        says: [`${WITHOUT}\nThe config is applied in 'try' mode and will be automatically reverted back in 2m0s`],
        // A minute of the machine takes no second here.
        leads: running('example.org', false),
      },
      { run: `${apply} #label.yaml --mode try --timeout 90s`, says: ['reverted back in 1m30s'] },
      { run: `${apply} #label.yaml --mode auto`, says: [WITHOUT], leads: running('example.org', true) },
      { run: `${apply} #env.yaml --mode auto`, says: [WITH], leads: running('EXAMPLE', true) },
      { run: '-n @3 get machinestatus', says: ['STAGE'], leads: () => isRunning(3) },
      { run: `${apply} #worker.yaml --mode reboot`, says: [WITH], leads: () => expect(at(3).config).not.toContain('EXAMPLE') },
      { run: '-n @3 patch mc --mode staged -p {"machine":{"env":{"A":"b"}}}', says: [STAGED], leads: () => isRunning(3) },
      { run: `-n @3 reboot ${wait}`, says: passed, leads: running('A: b', true) },
    ])
  })

  describe('reboot, shutdown', () => {
    const on = (index: number) => {
      if (!at(index).powered) machines.world.powerOn(index)
      isRunning(index)
    }
    askAll([
      { run: `-n @4 reboot --mode powercycle ${wait}`, says: passed },
      { run: `-n @4 reboot --mode force ${wait}`, says: passed },
      {
        run: `-n @4 reboot --mode default ${wait}`,
        says: ['sequence: initialize action: START', 'stage: BOOTING', 'sequence: boot action: STOP', ...passed],
      },
      {
        run: `-n @3 shutdown ${wait}`,
        says: ['phase: volumeFinalize action: STOP', 'events check condition met'],
        leads: () => {
          expect(at(3).powered).toBe(false)
          expect(machines.world.nodes.isSchedulable('wk-1')).toBe(false)
          expect(machines.world.journal.of('evicted').map(e => e.machine)).toContain('wk-1')
        },
      },
      { run: '-n @3 version', exit: 1, says: ['code = Unavailable', 'no route to host'], leads: () => on(3) },
      { run: `-n @4 shutdown --force ${wait}`, says: ['events check condition met'], never: ['cordonAndDrainNode'], leads: () => on(4) },
    ])
  })

  describe('upgrade, rollback', () => {
    const image = 'ghcr.io/siderolabs/installer:v1.12.6'
    const runs = (version: string) => () => {
      isRunning(4)
      expect(versionOf(at(4))).toBe(version)
    }
    askAll([
      { run: '-n @4 rollback', ...refused('Unknown', 'previous UKI not found') },
      {
        run: `-n @4 upgrade --stage ${wait} --image ${image}`,
        says: passed,
        never: ['cordonAndDrainNode'],
        leads: runs('v1.12.6'),
      },
      { run: '-n @4 rollback', leads: runs('v1.12.5') },
      {
        run: `-n @4 upgrade --force --preserve ${wait} --image ${image}`,
        says: ['phase: drain', 'phase: upgrade', ...passed],
        leads: runs('v1.12.6'),
      },
      { run: '-n @4 get metakeys', says: ['NODE'], never: ['0x06', '0x07', '0x08'] },
      // Which waits by itself, and keeps what the kernel says for the case that something fails.
      {
        run: '-n @4 upgrade --debug --timeout 80s --image ghcr.io/siderolabs/installer:v1.12.5',
        says: passed,
        never: ['console logs'],
        leads: runs('v1.12.5'),
      },
      { run: '-n @4 upgrade --debug --timeout 80s --image example.com/none:v1', exit: 1, says: ['error validating installer image'] },
      { run: `-n @4 upgrade --stage --wait=false --image example.com/none:v1`, exit: 1, says: ['error validating installer image'] },
    ])
  })

  describe('reset', () => {
    const reset = '-n @3 reset --wait=false'
    const graceful = `--graceful=false --reboot`
    askAll([
      {
        run: `${reset} --wipe-mode system-disk --user-disks-to-wipe /dev/sdb`,
        ...refused('Unknown', "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter"),
      },
      {
        run: `${reset} --wipe-mode user-disks --system-labels-to-wipe EPHEMERAL`,
        ...refused('Unknown', "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter"),
      },
      { run: `${reset} --user-disks-to-wipe /dev/sdz`, ...refused('Unknown', "reset user disk failed: device /dev/sdz wasn't found") },
      { run: `${reset} --user-disks-to-wipe /dev/sr0`, ...refused('Unknown', 'reset user disk failed: device /dev/sr0 is readonly') },
      {
        run: `${reset} --user-disks-to-wipe /dev/sda`,
        ...refused('Unknown', 'reset user disk failed: device /dev/sda is the system disk'),
      },
      { run: `${reset} --system-labels-to-wipe NOSUCH`, ...noVolume('NOSUCH') },
      { run: `${reset} --system-labels-to-wipe BOOT`, ...noVolume('BOOT'), leads: () => isRunning(3) },
      {
        run: `-n @3 reset ${graceful} --wipe-mode user-disks --user-disks-to-wipe /dev/sdb ${wait}`,
        says: ['task: sendResetSignal', 'events check condition met', ...passed],
        never: ['cordonAndDrainNode', 'kexec'],
        leads: () => isRunning(3),
      },
      {
        run: `-n @2 reset --reboot --system-labels-to-wipe EPHEMERAL ${wait}`,
        says: [
          'task: cordonAndDrainNode',
          'task: removeAllPods',
          'task: leaveEtcd action: STOP',
          'task: sendResetSignal',
          'phase: kexec',
          ...passed,
        ],
        leads: () => isRunning(2),
      },
      { run: '-n @0 etcd members', says: ['cp-1', 'cp-2', 'cp-3'] },
      {
        run: `-n @3 reset ${graceful} --system-labels-to-wipe STATE --system-labels-to-wipe EPHEMERAL ${wait}`,
        says: passed,
        leads: () => expect(at(3).stage).toBe('maintenance'),
      },
      {
        run: `-n @4 reset ${wait}`,
        says: ['events check condition met'],
        leads: () => expect([at(4).powered, at(4).disk.slots.A]).toEqual([false, undefined]),
      },
    ])
  })

  describe('maintenance', () => {
    askAll([
      { run: 'get machinestatus -n @3 --insecure', says: ['maintenance   true'] },
      { run: 'version -n @3 --insecure', ...refused('Unimplemented', 'API is not implemented in maintenance mode') },
      { run: '-n @3 version', exit: 1, says: ['code = Unavailable', 'certificate signed by unknown authority'] },
      { run: 'get versions -n @5 --insecure', says: ['v1.12.5'] },
      { run: 'get systemdisk -n @3 --insecure', says: ['sda'] },
      { run: 'get systemdisk -n @5 --insecure', never: ['sda'] },
      { run: 'get mc -n @5 --insecure', exit: 1, says: ['PermissionDenied', 'not authorized'] },
      {
        run: 'apply-config --insecure -n @5 -f #worker.yaml --dry-run',
        says: ['Dry run summary:\nNode is running in maintenance mode and does not have a config yet.'],
      },
      {
        run: 'apply-config --insecure -n @5 -f #worker.yaml --mode no-reboot',
        ...refused('Unimplemented', "apply configuration --mode='no-reboot' is not supported in maintenance mode"),
      },
      {
        run: 'apply-config --insecure -n @5 -f #worker.yaml --mode staged',
        ...refused('Unimplemented', "apply configuration --mode='staged' is not supported in maintenance mode"),
      },
      {
        run: 'apply-config --insecure -n @5 -f #field.yaml',
        ...refused('Unknown', 'failed to parse config: unknown keys found during decoding:'),
      },
      { run: 'reset -n @5 --insecure --wait=false', exit: 1, says: ['code = Unimplemented'] },
      {
        run: 'apply-config --insecure -n @3 -f #worker.yaml',
        leads: () => {
          isRunning(3)
          expect(machines.world.nodes.isReady('wk-1')).toBe(true)
        },
      },
      { run: 'apply-config --insecure -n @5 -f #worker.yaml', leads: () => isRunning(5) },
      {
        run: 'apply-config --insecure -n @6 -f #controlplane.yaml',
        leads: () => {
          isRunning(6)
          expect(machines.world.etcd.memberOf(at(6))?.isLearner).toBe(false)
        },
      },
      { run: '-n @0 get members', says: ['new-1', 'worker', 'new-2', 'controlplane'] },
      { run: '-n @6 etcd members', says: ['new-2'] },
      { run: '-n @5 version', says: ['v1.12.5', 'RBAC'] },
      { run: 'version -n @5 --insecure', exit: 1 },
    ])
  })
})

describe.skipIf(!hasTalosctl)('machines of other versions', () => {
  const VERSIONS = ['v1.14.0-rc.1', 'v1.13.9', 'v1.14.0-rc.1', 'v1.11.5', 'v1.13.9', 'v1.14.0-rc.1']
  beforeAll(() =>
    start({
      ...{
        seed: 7,
        controlPlanes: 1,
        workers: 3,
        spares: 2,
        kubernetes: 'v1.34.2',
        speed: 40,
        durations: { reboot: [70_000, 80_000] },
        clusterName: 'home',
      },
      talos: index => VERSIONS[index]!,
      platform: 'metal',
    }),
  )
  afterAll(stop)

  askAll([
    { run: '-n @1 meta write 0x0a network' },
    { run: '-n @2 meta write 0x06 A', exit: 1, says: ['rpc error: code = '] },
    { run: '-n @2 meta delete 0x0a', exit: 1, says: ['rpc error: code = '] },
    { run: '-n @2 meta write 0x0e ours', leads: () => expect(at(2).disk.meta.get(0x0e)).toBe('ours') },
    {
      run: '-n @2 apply-config -f #worker.yaml --mode reboot',
      ...refused('Unimplemented', 'the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead'),
    },
    { run: '-n @2 apply-config -f #env.yaml --mode no-reboot', says: [WITHOUT], leads: () => expect(at(2).config).toContain('EXAMPLE') },
    { run: '-n @2 apply-config -f #worker.yaml --mode auto --dry-run', ...dryRun(WITHOUT, '-    env:\n-        EXAMPLE: one\n') },
    { run: '-n @1 apply-config -f #env.yaml --mode auto --dry-run', ...dryRun(WITH, env) },
    {
      run: '-n @2 reset --wait=false --system-labels-to-wipe KUBELET',
      exit: 1,
      says: ['code = Unknown desc = failed to reset: volume "KUBELET" resides on volume "EPHEMERAL", '],
    },
    { run: '-n @1 reset --wait=false --system-labels-to-wipe KUBELET', ...noVolume('KUBELET') },
    { run: `-n @3 reboot --mode force ${wait}`, says: passed },
    { run: `-n @2 reboot ${wait}`, says: ['phase: promotableVolumes', ...passed] },
    { run: 'version -n @4 --insecure', says: ['v1.13.9'], never: ['RBAC'] },
    { run: 'get machinestatus -n @4 --insecure', says: ['maintenance   true'] },
    { run: 'get mc -n @4 --insecure', exit: 1, says: ['PermissionDenied', 'not authorized'] },
    { run: 'reset -n @4 --insecure --wait=false', exit: 1, says: ['code = PermissionDenied desc = not authorized'] },
    { run: 'apply-config --insecure -n @4 -f #worker.yaml --dry-run', says: ['Dry run summary:', WITHOUT] },
    { run: 'apply-config --insecure -n @4 -f #worker.yaml --mode no-reboot', says: [WITHOUT], leads: () => isRunning(4) },
    { run: '-n @4 version', says: ['v1.13.9', 'RBAC'] },
  ])
})
