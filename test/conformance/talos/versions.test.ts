// The real talosctl asks the same of machines of five minors: one that runs, and one that waits in maintenance, of each.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Machine } from '../../../src/world/machine.ts'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { countInvocations, hasTalosctl, talosctl } from './talosctl.ts'

countInvocations()

const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9', 'v1.14.0-rc.1'] as const
const SCHEMATIC = '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'
const imageOf = (version: string): string =>
  version.startsWith('v1.14') ? `factory.talos.dev/metal-installer/${SCHEMATIC}:${version}` : `ghcr.io/siderolabs/installer:${version}`
/** The control plane runs the newest. */
const versionAt = (index: number): (typeof VERSIONS)[number] => VERSIONS[(index + 4) % 5]!

let home: string
let machines: Machines

async function start(): Promise<void> {
  home = await mkdtemp(join(tmpdir(), 'talosctl-versions-'))
  machines = await startMachines({
    ...{ seed: 8, controlPlanes: 1, workers: 5, spares: 5, talos: versionAt, installImage: index => imageOf(versionAt(index)) },
    ...{ kubernetes: 'v1.33.2', speed: 60, durations: { reboot: [70_000, 80_000] } },
  })
  await writeFile(join(home, 'admin'), await machines.talosconfig())
  for (const [index, version] of VERSIONS.entries()) {
    const { config } = machines.world.machine(index + 1)
    const files: Readonly<Record<string, string>> = {
      worker: config,
      env: config.replace('machine:\n', 'machine:\n    env:\n        A: one\n'),
      deep: config.replace('    kubelet:\n', '    kubelet:\n        nosuch: 1\n'),
      hostname: `${config}---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: other\n`,
      unattended: `${config}---\napiVersion: v1alpha1\nkind: UnattendedInstallConfig\n`,
      volume: 'apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n',
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(home, `${name}-${version}.yaml`), text)
  }
}
async function stop(): Promise<void> {
  await machines.close()
  await rm(home, { recursive: true, force: true })
}

describe.skipIf(!hasTalosctl)('machines of five minors', () => {
  beforeAll(start)
  afterAll(stop)

  describe.each(VERSIONS.map((version, index) => ({ version, minor: 10 + index, worker: index + 1, spare: index + 6 })))(
    '$version',
    ({ version, minor, worker, spare }) => {
      const machine = (): Machine => machines.world.machine(spare)
      const run = async (words: string): Promise<string> => {
        const named = words.replaceAll(/#(\w+)/g, (_, name: string) => join(home, `${name}-${version}.yaml`))
        const { code, out, err } = await talosctl(home, named.split(' '))
        return `exit ${code}\n${out}${err}`
      }
      const running = (words: string) => run(`-n ${machines.address(worker)} ${words}`)
      const waiting = (words: string) => run(`${words} --insecure -n ${machines.address(spare)}`)
      const says = (text: string, exit: number, ...parts: readonly string[]): void => {
        for (const part of [`exit ${exit}\n`, ...parts]) expect(text).toContain(part)
      }

      test('what it runs, and what it has not yet', { timeout: 60_000 }, async () => {
        says(await running('version'), 0, version, 'Enabled:     RBAC')
        if (minor < 11)
          says(
            await running('etcd downgrade validate 3.5'),
            1,
            'code = Unimplemented desc = unknown method EtcdDowngradeValidate for service machine.MachineService',
          )
      })

      test('configurations', { timeout: 90_000 }, async () => {
        const apply = (file: string, mode: string) => running(`apply-config --dry-run -f #${file} --mode ${mode}`)
        const env = await apply('env', 'no-reboot')
        if (minor < 14) says(env, 1, "code = InvalidArgument desc = this config change can't be applied in immediate mode\ndiff:\n")
        else says(env, 0, 'Applied configuration without a reboot (skipped in dry-run).')
        says(
          await apply('env', 'auto'),
          0,
          `Applied configuration with${minor < 14 ? ' a reboot' : 'out a reboot'} (skipped in dry-run).\nConfig diff:\n\n--- a\n+++ b\n`,
        )
        const notRegistered = (kind: string) => `code = InvalidArgument desc = "${kind}" "v1alpha1": not registered`
        const hostname = await apply('hostname', 'auto')
        if (minor < 12) says(hostname, 1, notRegistered('HostnameConfig'))
        else says(hostname, 0, 'Applied configuration without a reboot (skipped in dry-run).')
        says(
          await apply('unattended', 'auto'),
          1,
          minor < 14
            ? notRegistered('UnattendedInstallConfig')
            : 'UnattendedInstallConfig config is incompatible with v1alpha1 config (.machine.install)',
        )
        says(
          await apply('deep', 'auto'),
          1,
          'code = InvalidArgument desc = unknown keys found during decoding:\nmachine:\n    kubelet:\n        nosuch: 1\n',
        )
      })

      test('maintenance, from the network and over SideroLink', { timeout: 90_000 }, async () => {
        await vi.waitFor(() => expect(machine().stage).toBe('maintenance'), { timeout: 20_000 })
        const closed = 'code = Unimplemented desc = API is not implemented in maintenance mode'
        if (minor < 13) says(await waiting('version'), 1, closed)
        else says(await waiting('version'), 0, version)
        says(await waiting('get versions'), 0, version)
        const meta = await waiting('meta write 0x0d note')
        says(meta, 1, minor < 13 ? closed : 'code = PermissionDenied desc = not authorized')
        const partial = await waiting('apply-config -f #volume')
        says(partial, 0)
        expect(machine().stage).toBe('maintenance')

        machine().siderolink = true
        const answered = await waiting('version')
        says(answered, 0, version)
        expect(answered).not.toContain('RBAC')
        says(await waiting('meta write 0x0d note'), 0)
        expect(machine().disk.meta.get(0x0d)).toBe('note')
        machine().siderolink = false
      })

      test('apply-config --insecure leads to a running, joined machine', { timeout: 90_000 }, async () => {
        says(await waiting('apply-config -f #worker'), 0)
        await vi.waitFor(() => expect(machines.world.isUp(machine())).toBe(true), { timeout: 60_000, interval: 50 })
        expect(machines.world.nodes.isReady(machine().name)).toBe(true)
        says(await run(`-n ${machines.address(spare)} version`), 0, version, 'RBAC')
        says(await run(`-n ${machines.address(0)} get members`), 0, machine().name)
      })
    },
  )
})
