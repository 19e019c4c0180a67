import { ANNOTATION, LABEL } from '../../src/api/names.ts'
import { stopKubelet } from '../../src/world/down.ts'
import { RESOURCE, ensure } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { configStories } from './config-cases.ts'
import { rebootByHand, when } from './deeds.ts'
import { kubernetesStories } from './kubernetes-cases.ts'
import { nodeStories } from './node-cases.ts'
import { troubleStories } from './trouble-cases.ts'
import { NAME, type Case, type Run } from '../field-cases/play.ts'

export type Told = Case & { readonly title: string }

const talos = { version: 'v1.13.9' }
const MINUTE = 60_000
const S1 = 'a'.repeat(64)
const S2 = 'b'.repeat(64)

/** For good: its machine, its Node and its TalosMachine. */
const takeOut = (run: Run, name: string): void => {
  const { store, schedule } = run.world
  // The discovery of Talos tells nobody of it any more: a TalosMachine that is found anew is gone at once.
  const forget = (): void => {
    for (const { metadata } of store.list(ICHOR.machines).items)
      if (metadata.name.startsWith(`${name}-`)) store.remove(ICHOR.machines, metadata.namespace ?? '', metadata.name)
  }
  run.byHand(() => run.world.powerOff(name))
  run.byHand(() => run.world.userDeleteNode(name))
  store.watch(ICHOR.machines, undefined, ({ type }) => void (type === 'ADDED' && schedule.after(0, forget)))
  forget()
}

const mark = (
  run: Run,
  node: string,
  marks: { readonly labels?: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> },
): void => {
  const machine = run.world.store.list(ICHOR.machines).items.find(m => m.metadata.name.startsWith(`${node}-`))
  if (!machine) throw new Error(`no TalosMachine of ${node}`)
  const { labels, annotations } = machine.metadata
  run.world.store.update(ICHOR.machines, {
    ...machine,
    metadata: { ...machine.metadata, labels: { ...labels, ...marks.labels }, annotations: { ...annotations, ...marks.annotations } },
  })
}

const leadBy = async (run: Run, name: string): Promise<void> => {
  const { world } = run
  while (world.etcd.leader() !== world.member(name).id) {
    world.etcd.elect()
    await run.until('there is a leader', () => world.etcd.leader() !== '')
  }
  await run.pass(2 * MINUTE)
}

export const stories: Readonly<Record<string, Told>> = {
  ...kubernetesStories,
  ...configStories,
  ...nodeStories,
  ...troubleStories,

  happy: { title: 'Three control planes and two workers go to the next patch.', spec: { talos } },

  legacy: {
    title: 'Below Talos 1.13 one call drains, installs and reboots; Ichor drains before it, so that budgets count.',
    cluster: {
      talos: 'v1.12.4',
      kubernetes: 'v1.34.1',
      workloads: [{ name: 'web', replicas: 2, budget: { maxUnavailable: 1 }, on: [3, 4] }],
    },
    spec: { talos: { version: 'v1.12.5' } },
  },

  'next-minor': {
    title: 'From 1.12 to 1.13: the old way, because LifecycleService is not there yet; etcd stays on its minor.',
    cluster: { talos: 'v1.12.11', kubernetes: 'v1.35.1', workers: 1 },
    spec: { talos },
  },

  'etcd-minor': {
    title: 'From 1.10 to 1.11 etcd goes from 3.5 to 3.6, a member after the other.',
    cluster: { talos: 'v1.10.9', kubernetes: 'v1.33.1', workers: 1 },
    spec: { talos: { version: 'v1.11.6' } },
  },

  'single-node': {
    title: 'One node: the outage is acknowledged, nothing is drained, and the controller goes on when the API is back.',
    cluster: { controlPlanes: 1, workers: 0 },
    spec: { talos, acknowledge: ['api-outage'] },
    allowed: { apiOutage: true, undrained: true },
  },

  'two-control-planes': {
    title: 'Two control planes: quorum is lost for each reboot, as acknowledged.',
    cluster: { controlPlanes: 2, workers: 1 },
    spec: { talos, acknowledge: ['api-outage'] },
    allowed: { apiOutage: true },
  },

  'fallback-boot': {
    title: 'The new version does not start on wk-1 and Talos falls back: the run stops, wk-1 is given back; a person looks, and resumes.',
    spec: { talos },
    allowed: { attempts: 2 },
    arrange: ({ world }) => world.fault('wk-1', { failedBoots: 1 }),
    drive: async run => {
      await run.settled()
      await run.resume()
      await run.settled()
    },
  },

  'fallback-of-a-control-plane': {
    title: 'The same on cp-2: no other control plane is touched until a person resumes.',
    cluster: { workers: 0 },
    spec: { talos },
    allowed: { attempts: 2 },
    arrange: ({ world }) => world.fault('cp-2', { bootsOldSlot: 1 }),
    drive: async run => {
      await run.settled()
      await run.pass(30 * MINUTE)
      await run.resume()
      await run.settled()
    },
  },

  'budget-then-force': {
    title: 'A budget holds a pod on wk-1; with the policy force the pod is deleted after the timeout, and not before.',
    cluster: { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [3] }] },
    spec: { talos, drain: { policy: 'force', timeout: '2m' } },
    allowed: { deletes: true },
  },

  'etcd-sick-then-well': {
    title: 'After cp-1 the member of cp-2 falls ill: nothing is touched for twenty minutes, then it goes on by itself.',
    cluster: { workers: 0 },
    spec: { talos },
    allowed: { away: ['cp-2'] },
    arrange: async run => {
      await leadBy(run, 'cp-3')
      when(run, 'cp-1', 'install-image', () => {
        run.world.sicken('cp-2', true)
        run.world.schedule.after(20 * MINUTE, () => run.world.sicken('cp-2', false))
      })
    },
  },

  'etcd-alarm': {
    title: 'After cp-1 etcd runs out of space: only a person can mend that, so the run stops; it goes on when the alarm is disarmed.',
    cluster: { workers: 0 },
    spec: { talos },
    arrange: async run => {
      await leadBy(run, 'cp-3')
      when(run, 'cp-1', 'install-image', () => run.world.etcd.raiseAlarm(run.world.member('cp-2').id, 'NOSPACE'))
    },
    drive: async run => {
      await run.settled()
      run.world.etcd.disarm()
      await run.resume()
      await run.settled()
    },
  },

  'leader-last': {
    title: 'cp-1 leads etcd, so it goes last, and gives the leadership away before its reboot.',
    cluster: { workers: 0 },
    spec: { talos },
    arrange: run => leadBy(run, 'cp-1'),
  },

  'slow-static-pods': {
    title: 'The API server of a control plane starts two minutes after Talos calls the machine ready: the next one waits for it.',
    cluster: { workers: 0, durations: { staticPods: [2 * MINUTE, 2 * MINUTE] } },
    spec: { talos },
  },

  'order-and-hold': {
    title: 'cp-3 and wk-2 are asked to go first by label; wk-1 is held.',
    spec: { talos },
    arrange: async run => {
      await leadBy(run, 'cp-2')
      mark(run, 'cp-3', { labels: { [LABEL.upgradeOrder]: '1' } })
      mark(run, 'wk-2', { labels: { [LABEL.upgradeOrder]: '1' } })
      mark(run, 'wk-1', { annotations: { [ANNOTATION.upgradeHold]: 'true' } })
    },
  },

  'half-of-the-workers': {
    title: 'Half of six workers at once; the kubelet of wk-5 is dead, so it counts as away from the begin, and its upgrade cures it.',
    cluster: { controlPlanes: 1, workers: 6, workloads: [{ name: 'db', volume: true, on: [5] }] },
    spec: { talos, maxUnavailable: '50%', acknowledge: ['api-outage'] },
    allowed: { apiOutage: true },
    arrange: async run => {
      stopKubelet(run.world.site, run.world.machine('wk-5'))
      await run.pass(2 * MINUTE)
    },
  },

  'unready-worker-first': {
    title: 'One worker at a time, and the kubelet of wk-2 is dead: no other may be taken away beside it, so it goes first.',
    cluster: { controlPlanes: 1, workers: 3 },
    spec: { talos, acknowledge: ['api-outage'] },
    allowed: { apiOutage: true },
    arrange: async run => {
      stopKubelet(run.world.site, run.world.machine('wk-2'))
      await run.pass(2 * MINUTE)
    },
  },

  'two-workers-at-once': {
    title: 'Two workers at once.',
    cluster: { controlPlanes: 1, workers: 4 },
    spec: { talos, maxUnavailable: 2, acknowledge: ['api-outage'] },
    allowed: { apiOutage: true },
  },

  'health-gate': {
    title: 'While wk-1 is down the storage warns; it is well again for five seconds once, and for good ten minutes after wk-1 came back.',
    cluster: {
      cluster: {
        healthGates: [
          {
            name: 'storage',
            objectRef: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'storage', name: 'health' },
            expr: 'object.data.health == "OK"',
            stableFor: '1m',
          },
        ],
      },
    },
    spec: { talos },
    arrange: run => {
      const { store, schedule } = run.world
      const say = (health: string): void => {
        const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'storage', name: 'health' }, data: { health } }
        ensure(store, RESOURCE.configMaps, object)
        store.update(RESOURCE.configMaps, object)
      }
      say('OK')
      when(run, 'wk-1', 'down', () => say('WARN'))
      when(run, 'wk-1', 'uncordon', () => {
        for (const [health, afterMs] of [
          ['OK', 5 * MINUTE],
          ['WARN', 5 * MINUTE + 5_000],
          ['OK', 10 * MINUTE],
        ] as const)
          schedule.after(afterMs, () => say(health))
      })
    },
  },

  'stuck-then-freed': {
    title: 'wk-1 hangs in its shutdown. The run stops when its time is over; a person forces the reboot and resumes.',
    spec: { talos },
    arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: Infinity }),
    drive: async run => {
      await run.settled()
      rebootByHand(run, 'wk-1', 'force')
      await run.pass(5 * MINUTE)
      await run.resume()
      await run.settled()
    },
  },

  'rebooted-by-hand-before-its-install': {
    title: 'A person reboots wk-1 while its image is pulled: it is opened anew.',
    spec: { talos },
    arrange: run => when(run, 'wk-1', 'pulled', () => rebootByHand(run, 'wk-1')),
  },

  'rebooted-by-hand-during-its-install': {
    title: 'A person reboots wk-1 while the installer runs: it is cut off. The run stops, says so, and installs again when it is resumed.',
    // Longer than it takes to go down.
    cluster: { durations: { install: [40_000, 60_000] } },
    spec: { talos },
    allowed: { attempts: 2 },
    arrange: run => when(run, 'wk-1', 'install-began', () => void run.world.schedule.after(5000, () => rebootByHand(run, 'wk-1'))),
    drive: async run => {
      await run.settled()
      await run.resume()
      await run.settled()
    },
  },

  'rebooted-by-hand-after-its-install': {
    title: 'A person reboots wk-1 while it is drained: it boots what was installed, and that is that.',
    cluster: { workloads: [{ name: 'db', budget: { minAvailable: 1 }, on: [3] }] },
    spec: { talos },
    arrange: run => when(run, 'wk-1', 'evict-refused', () => rebootByHand(run, 'wk-1')),
  },

  'cordoned-by-a-person-during-the-reboot': {
    title: 'Without a drain Ichor cordons nothing; a person cordons wk-1 while it is away, and it stays so.',
    spec: { talos, drain: { policy: 'skip' } },
    allowed: { undrained: true },
    arrange: run => when(run, 'wk-1', 'down', () => run.world.userCordon('wk-1')),
  },

  'schematic-kept': {
    title: 'The machines run extensions, their configuration names the plain installer: the schematic that runs is kept.',
    cluster: { workers: 1, schematic: S1, extensions: ['iscsi-tools'], installImage: () => 'ghcr.io/siderolabs/installer:v1.13.5' },
    spec: { talos },
  },

  'schematic-changed': {
    title: 'The same version with another schematic is an upgrade too.',
    cluster: { workers: 1, schematic: S1, extensions: ['iscsi-tools'], talos: 'v1.13.9' },
    spec: { talos: { version: 'v1.13.9', schematic: S2 } },
    arrange: ({ world }) => world.registry.addSchematic(S2, ['iscsi-tools', 'util-linux-tools']),
  },

  'own-pod-last': {
    title: "Ichor's own pod is on wk-1: it is evicted when the others are gone, and its successor goes on.",
    cluster: {
      self: { namespace: 'ichor-system', pod: 'ichor-0', node: 'wk-1' },
      workloads: [
        { name: 'ichor-0', namespace: 'ichor-system', bare: true, on: [3] },
        { name: 'a-web', replicas: 3, on: [3] },
        { name: 'z-web', replicas: 1, on: [3] },
      ],
    },
    spec: { talos },
    arrange: run =>
      void run.world.journal.onEntry(({ what, detail }) => {
        if (what === 'pod-gone' && detail === 'ichor-system/ichor-0') run.restart()
      }),
  },

  'machine-joins-during-the-run': {
    title: 'wk-2 comes into the selection while wk-1 is upgraded: it goes to the end.',
    spec: { talos, machineSelector: { matchLabels: { 'example.com/wave': '1' } } },
    arrange: run => {
      for (const name of ['cp-1', 'cp-2', 'cp-3', 'wk-1']) mark(run, name, { labels: { 'example.com/wave': '1' } })
      when(run, 'wk-1', 'installed', () => mark(run, 'wk-2', { labels: { 'example.com/wave': '1' } }))
    },
  },

  'machine-object-deleted-during-the-run': {
    title: 'A person deletes the TalosMachine of wk-1 while it is worked on: it is discovered anew under its name, and finished.',
    spec: { talos },
    arrange: run =>
      when(run, 'wk-1', 'installed', () => {
        const machine = run.world.store.list(ICHOR.machines).items.find(m => m.metadata.name.startsWith('wk-1-'))
        run.world.store.remove(ICHOR.machines, machine?.metadata.namespace ?? '', machine?.metadata.name ?? '')
      }),
  },

  'worker-removed-during-the-run': {
    title: 'wk-1 is taken out of the cluster while control planes are upgraded: its turn comes, it stays away, and it is left out.',
    spec: { talos },
    arrange: run => when(run, 'cp-1', 'boot', () => takeOut(run, 'wk-1')),
  },

  'worker-removed-while-it-is-open': {
    title:
      'wk-1 is taken out of the cluster while it reboots: the operation stops when the time of its step has passed, and a cancel ends it.',
    spec: { talos },
    arrange: run => when(run, 'wk-1', 'down', () => run.world.schedule.after(1_000, () => takeOut(run, 'wk-1'))),
    drive: async run => {
      await run.settled()
      run.edit(NAME, { spec: { cancelled: true } })
      await run.until('it is cancelled', () => run.status().phase === 'Cancelled')
      await run.settled()
    },
  },

  'volumes-detach-first': {
    title: 'A pod with a volume leaves wk-1: the reboot waits until the volume is detached.',
    cluster: { workloads: [{ name: 'db', volume: true, on: [3] }] },
    spec: { talos },
  },

  'api-away-for-a-while': {
    title: 'The Kubernetes API answers 503 for five minutes while wk-1 is away: nothing is lost but time.',
    spec: { talos },
    arrange: run => when(run, 'wk-1', 'down', () => run.world.apiOutage(5 * MINUTE)),
  },
}
