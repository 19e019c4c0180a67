// Patches of the machine configuration are rolled out, and what comes between.
import { setConfig } from '../../src/world/configuration.ts'
import type { Case, Run } from '../field-cases/play.ts'

const SETS = 'machine:\n  sysctls:\n    net.core.somaxconn: "65535"\n'
const ADDS = 'machine:\n  certSANs:\n    - ichor.example.com\n'
const ON_BOOT = 'machine:\n  env:\n    LEVEL: debug\n'
const SCHEDULER = 'cluster:\n  scheduler:\n    image: registry.k8s.io/kube-scheduler:v1.36.1\n'
export const CUTS_OFF =
  'machine:\n  network:\n    interfaces:\n      - interface: eth0\n        routes:\n          - network: 0.0.0.0/0\n            gateway: 192.0.2.1\n'

const patched = (mode: string, ...patches: readonly string[]) => ({ config: { mode, patches: patches.map(inline => ({ inline })) } })

/** Somebody writes another configuration, right before our own call reaches the machine. */
export const overtaken = ({ world, byHand }: Run, name: string): void => {
  const stop = world.calls.intercept(call => {
    const machine = call.name === 'applyConfiguration' ? world.at(call.target) : undefined
    if (machine?.name !== name) return undefined
    stop()
    byHand(() => setConfig(world.site, machine, machine.config.replace('wipe: false', 'wipe: true')))
    return undefined
  })
}

export const configStories: Readonly<Record<string, Case & { readonly title: string }>> = {
  'config-try': {
    title: 'A sysctl, on trial first: a worker, the control planes with the leader last, the other worker. Nothing is rebooted.',
    spec: patched('try', SETS),
  },
  'config-no-reboot': {
    title: 'Another image of the scheduler, for good at once: its static pods are waited for.',
    spec: patched('no-reboot', SCHEDULER),
  },
  'config-staged': {
    title: 'A change that needs a reboot is left for the next one.',
    spec: patched('staged', ON_BOOT),
  },
  'config-reboot': {
    title: 'The same, and each machine is drained and rebooted into it.',
    cluster: { workloads: [{ name: 'web', replicas: 2, on: [3] }] },
    spec: patched('reboot', ON_BOOT),
  },
  'config-cuts-off': {
    title: 'A gateway that nobody has: the canary is cut off, Talos puts the configuration from before back, and nobody else is given it.',
    spec: patched('try', CUTS_OFF),
  },
  'config-refused-by-one': {
    title: 'One machine refuses it when it is shown: none is given it.',
    spec: patched('try', SETS),
    arrange: ({ world }) => world.fault('wk-2', { refusesConfig: '1 error occurred: static hostname is already set in v1alpha1 config' }),
  },
  'config-overtaken': {
    title:
      'Somebody else changes the configuration of cp-2 right before the write: nothing is overwritten. A person resumes, and it is patched anew.',
    spec: patched('no-reboot', SETS),
    allowed: { attempts: 2 },
    arrange: run => overtaken(run, 'cp-2'),
    drive: async run => {
      await run.settled()
      await run.resume()
      await run.settled()
    },
  },
  'config-overtaken-adding': {
    title:
      'The same with a patch that adds to a list: whether it is in there cannot be told, so a resume does not apply it again. A cancel ends it.',
    spec: patched('no-reboot', ADDS),
    allowed: { attempts: 2 },
    arrange: run => overtaken(run, 'cp-2'),
    drive: async run => {
      await run.settled()
      await run.resume()
      await run.settled()
      run.edit('up', { spec: { cancelled: true } })
      await run.until('it is cancelled', () => run.status().phase === 'Cancelled')
    },
  },
  'config-scheduler-crashes': {
    title: 'The new scheduler does not stay up: the rollout stops at the first control plane.',
    spec: patched('no-reboot', SCHEDULER),
    arrange: ({ world }) => void world.site.faults.crashing.set('kube-scheduler:v1.36.1', 'Error: unknown flag: --gone'),
  },
}
