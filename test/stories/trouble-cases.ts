// One story for each sort of trouble that storms are made of, where no other tells it already.
import { ANNOTATION } from '../../src/api/names.ts'
import { createWeather, inWeather } from '../../src/storm/weather.ts'
import { writeTalosconfig } from '../../src/world/ports/connections.ts'
import { NAME, type Case, type Run } from '../field-cases/play.ts'
import { rebootByHand, when } from './deeds.ts'

const MINUTE = 60_000
const talos = { version: 'v1.13.9' }
const node = (action: string, machine: string) => ({ node: { action, machine } })

const later = ({ world }: Run, ms: number, act: () => void): void => void world.schedule.after(ms, act)

const applyRetry = (run: Run): void =>
  run.edit(NAME, {
    annotations: { [ANNOTATION.retry]: 'true' },
    managedFields: [
      {
        manager: 'gitops',
        operation: 'Apply',
        time: new Date(run.world.schedule.now()).toISOString(),
        fieldsV1: { 'f:metadata': { 'f:annotations': { [`f:${ANNOTATION.retry}`]: {} } } },
      },
    ],
  })

const stalled = createWeather()
const hurried = createWeather()

export const troubleStories: Readonly<Record<string, Case & { readonly title: string }>> = {
  'trouble-crash': {
    title: 'The controller dies as it asks wk-1 to reboot; who comes after it looks first, and asks nothing twice.',
    spec: { talos },
    allowed: { deaths: 1 },
    arrange: run =>
      when(run, 'wk-1', 'reboot-requested', () => {
        run.process().kill()
        later(run, 10_000, run.restart)
      }),
  },
  'trouble-lost-reply': {
    title: 'The answer to the reboot of wk-1 is lost: the machine itself tells that it was heard.',
    spec: node('reboot', 'wk-1'),
    arrange: ({ world }) =>
      world.calls.next({ name: 'reboot' }, { do: 'fail', when: 'after', fault: { kind: 'unreachable', message: 'connection reset' } }),
  },
  'trouble-slow': {
    title: 'wk-1 answers each call four seconds late: that costs time.',
    spec: node('reboot', 'wk-1'),
    arrange: ({ world }) => world.fault('wk-1', { slowMs: 4000 }),
  },
  'trouble-dead': {
    title: 'wk-1 is cut off for three minutes as its installer ends. Nobody heard that it did, so it runs once more.',
    spec: { talos },
    allowed: { away: ['wk-1'], deaths: 1 },
    arrange: run =>
      when(run, 'wk-1', 'installed', () => {
        run.byHand(() => run.world.blackHole('wk-1', true))
        later(run, 3 * MINUTE, () => run.byHand(() => run.world.blackHole('wk-1', false)))
      }),
  },
  'trouble-locked': {
    title: 'wk-1 refuses the reboot twice, because it is in a sequence of its own; it is asked again.',
    spec: node('reboot', 'wk-1'),
    arrange: ({ world }) =>
      world.calls.next(
        { name: 'reboot', times: 2 },
        { do: 'fail', when: 'before', fault: { kind: 'precondition', message: 'FailedPrecondition: locked' } },
      ),
  },
  'trouble-address': {
    title: 'wk-1 comes back from its reboot with another address: it is known by what it is.',
    spec: { talos },
    arrange: run => when(run, 'wk-1', 'reboot-requested', () => run.world.readdress('wk-1', ['10.5.1.9'], 'next boot')),
  },
  'trouble-api-errors': {
    title: 'Somebody else writes the operation before each of ten writes of ours: each is thrown away, and decided anew.',
    spec: node('reboot', 'wk-1'),
    arrange: run => void (run.world.faults.statusConflicts = 10),
  },
  'trouble-watch': {
    title: 'No watch tells anything any more once wk-1 is cordoned: what is in the middle of something is looked at by time.',
    cluster: { wrap: ports => inWeather(ports, stalled) },
    spec: node('reboot', 'wk-1'),
    arrange: run => {
      stalled.watches = 'fine'
      when(run, 'wk-1', 'cordon', () => void (stalled.watches = 'stalled'))
    },
  },
  'trouble-clock': {
    title: 'The clock of the controller jumps an hour ahead while wk-1 is away: it is not given up for that.',
    cluster: { wrap: ports => inWeather(ports, hurried) },
    spec: { ...node('reboot', 'wk-1'), timeouts: { reboot: '2h' } },
    arrange: run => {
      hurried.clockOffset.clear()
      when(run, 'wk-1', 'down', () => void hurried.clockOffset.set(run.process().ports.client.name, 60 * MINUTE))
    },
  },
  'trouble-leaders': {
    title:
      'The leader is frozen for a minute as wk-1 is installed: another leads, runs the installer anew, and the first does nothing more.',
    spec: { talos },
    allowed: { deaths: 1 },
    arrange: run => {
      run.start('ichor-other')
      when(run, 'wk-1', 'install-began', () => {
        const { freeze, thaw } = run.process()
        freeze()
        later(run, MINUTE, thaw)
      })
    },
  },
  'trouble-people': {
    title: 'A person cancels while cp-2 reboots: it is carried to its end, and nothing else is begun.',
    spec: { talos },
    arrange: run => when(run, 'cp-2', 'down', () => run.edit(NAME, { spec: { cancelled: true } })),
    drive: async run => {
      await run.until('it is cancelled', () => run.status().phase === 'Cancelled')
      await run.pass(3 * MINUTE)
    },
  },
  'trouble-gitops': {
    title: 'The new version does not start on cp-2, twice. A retry that stands in Git is honoured once, and taken away each time after.',
    cluster: { workers: 0 },
    spec: { talos },
    allowed: { attempts: 2 },
    arrange: ({ world }) => world.fault('cp-2', { failedBoots: 2 }),
    drive: async run => {
      await run.settled()
      applyRetry(run)
      await run.until('the new try has begun', () => run.status().appliedRetry !== undefined)
      await run.settled()
      applyRetry(run)
      await run.pass(5 * MINUTE)
    },
  },
  'trouble-access': {
    title:
      'The talosconfig expires when wk-1 was asked to reboot; half an hour of that would be its end, but it is renewed after ten minutes.',
    spec: node('reboot', 'wk-1'),
    arrange: run =>
      when(run, 'wk-1', 'reboot-requested', () => {
        writeTalosconfig(run.world, { namespace: 'ichor-system' }, { expires: run.world.schedule.now() - 1 })
        later(run, 10 * MINUTE, () => writeTalosconfig(run.world, { namespace: 'ichor-system' }))
      }),
  },
  'trouble-reboot-by-hand': {
    title: 'A person reboots wk-1 while it is drained for a reboot: the boot id has changed, and that is all that was wanted.',
    cluster: { controlPlanes: 3, workers: 2, workloads: [{ name: 'web', replicas: 2, graceSeconds: 30, on: [3] }] },
    spec: node('reboot', 'wk-1'),
    arrange: run => when(run, 'wk-1', 'evicted', () => rebootByHand(run, 'wk-1')),
  },
}
