// One machine of each minor with a configuration, and one that waits for its first: what each makes of the same requests.
import { type Client, type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ApplyConfigurationRequest_Mode as Mode, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { callUnary, type Machines, startMachines } from '../../../test/machines-on-the-wire.ts'

const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9', 'v1.14.0-rc.1']
const WITHOUT = 'Applied configuration without a reboot'
const WITH = 'Applied configuration with a reboot'
const IMMEDIATE = "this config change can't be applied in immediate mode\ndiff:\n"

let machines: Machines
beforeAll(async () => {
  const factory = 'factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'
  machines = await startMachines({
    // The last official installer is that of 1.13.
    installImage: index => (index % 5 === 0 ? `${factory}:v1.14.0-rc.1` : `ghcr.io/siderolabs/installer:${VERSIONS[(index + 4) % 5]!}`),
    ...{ seed: 3, controlPlanes: 1, workers: 5, spares: 5, talos: index => VERSIONS[(index + 4) % 5]!, kubernetes: 'v1.33.2' },
    ...{ speed: 100, durations: { reboot: [20_000, 30_000] } },
  })
})
afterAll(() => machines.close())

type Said = { readonly mode?: Mode; readonly details?: string; readonly warnings?: readonly string[]; readonly error?: string }

async function applied(client: Client, text: string, mode: Mode, dryRun = false): Promise<Said> {
  try {
    const { messages } = await callUnary(client, MachineService.method.applyConfiguration, {
      data: new TextEncoder().encode(text),
      mode,
      dryRun,
      // Some seconds of ours.
      tryModeTimeout: { seconds: 3600n, nanos: 0 },
    })
    const [one] = messages
    return { mode: one!.mode, details: one!.modeDetails, warnings: one!.warnings }
  } catch (error) {
    const { code, details } = error as ServiceError
    return { error: `${status[code]} ${details}` }
  }
}

describe.each(VERSIONS.map((version, index) => ({ version, minor: 10 + index, worker: index + 1, spare: index + 6 })))(
  '$version',
  ({ version, minor, worker, spare }) => {
    const machine = () => machines.world.machine(worker)
    const below = (line: string, more: string) => machine().config.replace(`${line}\n`, `${line}\n${more}\n`)
    const env = () => below('machine:', '    env:\n        A: "1"')
    const ask = async (text: string, mode: Mode, dryRun = false) => applied(await machines.client(worker), text, mode, dryRun)

    test('runs the version that it is to run', () => {
      expect(machine().disk.slots.A?.version).toBe(version)
      expect(machine().stage).toBe('running')
    })

    test('a change that needs a reboot', async () => {
      const immediate = { error: expect.stringContaining(`INVALID_ARGUMENT ${IMMEDIATE}`) as string }
      const isOld = minor < 14
      expect(await ask(env(), Mode.NO_REBOOT, true)).toMatchObject(isOld ? immediate : { mode: Mode.NO_REBOOT })
      expect(await ask(env(), Mode.TRY, true)).toMatchObject(isOld ? immediate : { mode: Mode.TRY })
      const auto = await ask(env(), Mode.AUTO, true)
      expect(auto.mode).toBe(isOld ? Mode.REBOOT : Mode.NO_REBOOT)
      expect(auto.details).toContain(`Dry run summary:\n${isOld ? WITH : WITHOUT} (skipped in dry-run).\nConfig diff:\n\n--- a\n+++ b\n`)
    })

    test('the mode that reboots, and one that there is not', async () => {
      const reboot = await ask(machine().config, Mode.REBOOT, true)
      if (minor < 14) expect(reboot.details).toBe(`Dry run summary:\n${WITH} (skipped in dry-run).\nConfig diff:\n\nNo changes.`)
      else expect(reboot.error).toBe('UNIMPLEMENTED the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead')
      const strange = await ask(machine().config, 9 as Mode)
      expect(strange.error).toBe(`${minor < 14 ? 'UNKNOWN' : 'INVALID_ARGUMENT'} incorrect mode '9' specified for the apply config call`)
    })

    test('what cannot be', async () => {
      const doc = 'apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n'
      expect((await ask(doc, Mode.AUTO)).error).toContain(
        "INVALID_ARGUMENT the applied machine configuration doesn't contain v1alpha1 config",
      )
      const newer = machine().config.replace(/kubelet:v[\d.]+/, 'kubelet:v1.50.0')
      expect((await ask(newer, Mode.AUTO)).error).toContain(
        `INVALID_ARGUMENT 1 error occurred:\n\t* v1alpha1.Config: 1 error occurred:\n\t* kubelet image is not valid: version of Kubernetes 1.50.0 is too new to be used with Talos ${version.slice(1)}\n`,
      )
      const untagged = machine().config.replace(/kubelet:v[\d.]+/, 'kubelet:latest')
      expect((await ask(untagged, Mode.AUTO)).error).toContain(
        'kubelet image is not valid: invalid image reference: "ghcr.io/siderolabs/kubelet:latest"',
      )
      const hostname = `${machine().config}---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n`
      const { error } = await ask(hostname, Mode.AUTO, true)
      expect(error).toBe(minor < 12 ? 'INVALID_ARGUMENT "HostnameConfig" "v1alpha1": not registered' : undefined)
    })

    test('any other request ends a trial, even one that comes to nothing', async () => {
      const tried = below('machine:', '    nodeLabels:\n        tried: "1"')
      const before = machine().config
      expect((await ask(tried, Mode.TRY)).details).toContain(WITHOUT)
      expect(machine().endTrial).toBeDefined()
      await ask('no: configuration', Mode.AUTO)
      expect(machine().endTrial).toBeUndefined()
      expect(machine().config).toBe(tried)
      expect((await ask(before, Mode.NO_REBOOT)).details).toBe(WITHOUT)
    })

    test('in maintenance: what is too little, and what is wrong', async () => {
      const ready = () => expect(machines.world.machine(spare).stage).toBe('maintenance')
      await vi.waitFor(ready, { timeout: 20_000 })
      const client = machines.anonymous(spare)
      const config = machine().config
      const doc = 'apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n'
      expect(await applied(client, doc, Mode.AUTO)).toEqual(
        minor < 13 ? { mode: Mode.REBOOT, details: '', warnings: [] } : { mode: Mode.NO_REBOOT, details: WITHOUT, warnings: [] },
      )
      const errors = async (text: string, mode: Mode) => (await applied(client, text, mode)).error
      expect(await errors('nosuch: 1', Mode.AUTO)).toBe(
        minor < 13 ? 'UNKNOWN failed to parse config: missing kind' : 'INVALID_ARGUMENT missing kind',
      )
      expect(await errors(config.replace('type: worker', 'type: server'), Mode.AUTO)).toContain(
        `INVALID_ARGUMENT ${minor < 13 ? 'configuration validation failed: ' : ''}1 error occurred:\n\t* v1alpha1.Config: 1 error occurred:\n\t* unknown machine type "server"`,
      )
      expect(await errors(config.replace(/kubelet:v[\d.]+/, 'kubelet:v1.50.0'), Mode.AUTO)).toContain(
        `INVALID_ARGUMENT ${minor < 13 ? 'runtime configuration validation failed: ' : ''}1 error occurred:`,
      )
      const withoutDisk = config.replace(/ {8}disk: .*\n/, '')
      const dry = await applied(client, withoutDisk, Mode.AUTO, true)
      if (minor < 14) expect(dry.error).toContain('either install disk or diskSelector should be defined')
      const unsupported = (mode: string) =>
        minor < 13 ? `UNIMPLEMENTED apply configuration --mode='${mode}' is not supported in maintenance mode` : undefined
      if (minor < 13) {
        expect(await errors(config, Mode.NO_REBOOT)).toBe(unsupported('no-reboot'))
        expect(await errors(config, Mode.STAGED)).toBe(unsupported('staged'))
      }
      const warned = await applied(client, config.replace('type: worker', 'type: join'), Mode.AUTO, true)
      if (minor < 13) expect(warned.warnings).toEqual(['use "worker" instead of "join" for machine type'])
      ready()
    })

    test('from maintenance to a running, joined machine', { timeout: 60_000 }, async () => {
      await applied(machines.anonymous(spare), machine().config, Mode.AUTO)
      await vi.waitFor(() => expect(machines.world.isUp(machines.world.machine(spare))).toBe(true), { timeout: 50_000, interval: 20 })
      expect(machines.world.nodes.isReady(machines.world.machine(spare).name)).toBe(true)
      expect(machines.world.machine(spare).disk.slots.A?.version).toBe(version)
    })

    test('another machine type comes with the next boot', { timeout: 60_000 }, async () => {
      const { bootID } = machine()
      machines.world.fault(worker, { stopPodsMs: 200_000 })
      const said = await ask(machine().config.replace('type: worker', 'type: controlplane'), Mode.AUTO)
      if (minor < 14) {
        expect(said).toMatchObject({ mode: Mode.REBOOT, details: expect.stringContaining(`${WITH}: ${IMMEDIATE}`) as string })
        if (minor === 13)
          expect((await ask(machine().config, Mode.AUTO)).error).toBe(
            'FAILED_PRECONDITION configuration was already applied and node is rebooting, cannot apply more configuration changes until next reboot',
          )
      } else {
        expect(said).toMatchObject({ mode: Mode.NO_REBOOT, details: WITHOUT })
        expect(machine().role).toBe('worker')
        await callUnary(await machines.client(worker), MachineService.method.reboot, {})
      }
      await vi.waitFor(
        () => {
          expect(machine().bootID).not.toBe(bootID)
          expect(machines.world.isUp(machine())).toBe(true)
          expect(machines.world.etcd.memberOf(machine())?.isLearner).toBe(false)
        },
        { timeout: 50_000, interval: 20 },
      )
      expect(machine().role).toBe('controlplane')
    })
  },
)
