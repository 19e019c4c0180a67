import { ANNOTATION, CONTROLLER, leaseName, operationHolder } from '../../api/names.ts'
import { RESOURCE } from '../../world/objects.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { Trouble } from '../plan.ts'
import { machinesOf } from '../plan.ts'
import type { Stage } from '../stage.ts'
import { CLUSTER, NAMESPACE } from '../story.ts'

/** What people do, and the tools that do it for them. */

const WHATS = [
  ...[
    'cordon',
    'cordon',
    'uncordon',
    'uncordon',
    'delete node',
    'reboot',
    'reboot',
    'pause',
    'pause',
    'pause',
    'resume',
    'retry',
    'retry twice',
  ],
  ...[
    'cancel',
    'delete operation',
    're-create',
    'edit annotations',
    'hold',
    'delete machine object',
    'edit lease',
    'delete lease',
    'another operation',
  ],
  ...['asks for another cluster'],
  ...['a crowd of operations', 'a crowd of operations', 'edit machine status', 'edit machine status', 'add a machine object'],
  ...['other value of retry', 'scale a budget', 'override', 'another kind of operation', 'lease of a machine', 'lease of the CNI'],
  ...['lease of a machine that is gone', 'lease of an operation that is gone', 'lease of a cluster that is gone', 'lease without its uid'],
] as const

const theOperation = (stage: Stage): string => stage.plan.operations[0]?.name ?? ''

export const people: Trouble<Stage> = {
  family: 'people',
  harmless: false,
  draw: ({ random, shape, horizonMs, calls }) => ({
    family: 'people',
    what: random.pick(WHATS),
    // In the very middle of something, sometimes.
    when: random.chance(0.2) ? { call: random.between(1, calls) } : { at: random.between(0, horizonMs) },
    machine: random.between(0, machinesOf(shape) - 1),
    forMs: random.between(1000, 180_000),
  }),
  strike: (stage, { what, machine: index, forMs = 1000 }) => {
    const { story } = stage
    const { world } = story
    const machine = stage.machine(index)
    const name = theOperation(stage)
    stage.note(`a person: ${what}${/cordon|node|reboot|hold|machine/.test(what) ? ` ${machine.name}` : ''}`)
    // Whoever finds no API asks again.
    const atTheApi = (run: () => void): void => world.api.whenAvailable(() => stage.byHand(undefined, run))
    const isNode = (): boolean => world.store.get(RESOURCE.nodes, '', machine.name) !== undefined
    const after = (ms: number, run: () => void): void => void world.schedule.after(ms, run)
    switch (what) {
      case 'cordon':
        return atTheApi(() => isNode() && world.userCordon(machine.name))
      case 'uncordon':
        return atTheApi(() => isNode() && world.userUncordon(machine.name))
      case 'delete node':
        return stage.byHand(machine, () => world.userDeleteNode(machine.name))
      case 'reboot':
        return stage.rebootByHand(machine)
      case 'pause':
        stage.ask(name, { paused: true })
        return after(forMs, () => stage.ask(name, { paused: false }))
      case 'resume':
        return stage.ask(name, { paused: false, retry: 'by hand' })
      case 'retry':
        return stage.ask(name, { retry: 'by hand' })
      case 'retry twice':
        stage.ask(name, { retry: 'by hand' })
        return after(1500, () => stage.ask(name, { retry: 'by hand' }))
      case 'other value of retry':
        if (story.operation(name)) story.edit(name, { annotations: { [ANNOTATION.retry]: 'please' } })
        return
      case 'cancel':
        return stage.ask(name, { cancelled: true })
      case 'delete operation':
        if (story.operation(name)) story.remove(name)
        return
      case 're-create': {
        if (story.operation(name)) story.remove(name)
        return after(forMs, () => create(stage, name))
      }
      case 'another operation': {
        const draft = stage.plan.operations[0]
        if (draft && !story.operation('another')) story.create({ ...draft, name: 'another' })
        return
      }
      case 'override':
        if (story.operation(name)) story.edit(name, { spec: { override: true }, annotations: { [ANNOTATION.overrideBy]: 'somebody' } })
        return
      case 'another kind of operation': {
        if (story.operation('other-kind')) return
        const accepted = { acknowledge: ['api-outage' as const] }
        story.create(
          stage.plan.kind === 'node'
            ? { name: 'other-kind', spec: { kind: 'talos', ...accepted, talos: { version: 'v1.13.9' } } }
            : { name: 'other-kind', spec: { kind: 'node', ...accepted, node: { action: 'reboot', machine: machine.name } } },
        )
        return
      }
      case 'lease of a machine': {
        const { name: own = '', uid } = world.store.list(ICHOR.machines).items[0]?.metadata ?? {}
        return lend(stage, `${CONTROLLER}/machine/${NAMESPACE}/${own}`, uid)
      }
      case 'lease of the CNI':
        return lend(stage, `${CONTROLLER}/cni/${NAMESPACE}/${CLUSTER}`, world.store.get(ICHOR.clusters, NAMESPACE, CLUSTER)?.metadata.uid)
      case 'lease of a machine that is gone':
        return lend(stage, `${CONTROLLER}/machine/${NAMESPACE}/gone`, GONE)
      case 'lease of an operation that is gone':
        return lend(stage, operationHolder(NAMESPACE, 'gone'), GONE)
      case 'lease of a cluster that is gone':
        return lend(stage, `${CONTROLLER}/cni/${NAMESPACE}/${CLUSTER}`, GONE)
      case 'lease without its uid': {
        const lease = world.store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
        if (!lease) return
        const { [ANNOTATION.holderUid]: _uid, ...annotations } = lease.metadata.annotations ?? {}
        stage.byHand(undefined, () => world.store.update(RESOURCE.leases, { ...lease, metadata: { ...lease.metadata, annotations } }))
        return
      }
      case 'edit annotations':
        if (story.operation(name)) story.edit(name, { annotations: { 'example.com/note': String(world.schedule.now()) } })
        return
      case 'hold': {
        const object = world.store
          .list(ICHOR.machines)
          .items.find(m => (m['spec'] as { address?: string }).address === machine.addresses[0])
        if (!object) return
        world.store.update(ICHOR.machines, {
          ...object,
          metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, [ANNOTATION.upgradeHold]: 'true' } },
        })
        return
      }
      case 'delete machine object': {
        const object = world.store
          .list(ICHOR.machines)
          .items.find(m => (m['spec'] as { address?: string }).address === machine.addresses[0])
        if (object) world.store.remove(ICHOR.machines, object.metadata.namespace ?? '', object.metadata.name)
        return
      }
      case 'asks for another cluster':
        if (!story.operation('elsewhere'))
          story.create({
            name: 'elsewhere',
            spec: { kind: 'node', clusterRef: { name: 'away' }, node: { action: 'reboot', machine: machine.name } },
          })
        return () => stage.ask('elsewhere', { cancelled: true })
      case 'a crowd of operations': {
        // Not in the order of their names.
        for (const [at, { name: of }] of [...world.machines.slice(0, 3).entries()].toReversed())
          if (!story.operation(`crowd-${at}`))
            story.create({
              name: `crowd-${at}`,
              spec: {
                kind: 'node',
                acknowledge: ['api-outage'],
                node: { action: at === 1 ? 'restart-service' : 'reboot', machine: of, ...(at === 1 ? { service: 'kubelet' } : {}) },
              },
            })
        stage.ask('crowd-0', { paused: true })
        return after(forMs, () => stage.ask('crowd-0', { paused: false }))
      }
      case 'edit machine status': {
        // Whoever restores objects from a backup without their status. Discovery writes it anew.
        const object = world.store
          .list(ICHOR.machines)
          .items.find(m => (m['spec'] as { address?: string }).address === machine.addresses[0])
        if (object) world.store.update(ICHOR.machines, { ...object, status: {} })
        return
      }
      case 'add a machine object': {
        const name = 'nobody-answers'
        if (world.store.get(ICHOR.machines, NAMESPACE, name)) return
        const [any] = world.store.list(ICHOR.machines).items
        if (!any) return
        world.store.create(ICHOR.machines, {
          apiVersion: String(any['apiVersion']),
          kind: String(any['kind']),
          metadata: { name, namespace: NAMESPACE, labels: any.metadata.labels ?? {} },
          spec: { clusterRef: { name: CLUSTER }, address: NOBODYS, role: 'worker' },
        })
        return () => void world.store.remove(ICHOR.machines, NAMESPACE, name)
      }
      case 'delete lease':
        stage.byHand(undefined, () => world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER)))
        return
      case 'edit lease':
        return lend(stage, 'somebody-else')
      default: {
        // Its owner closes a budget for a while.
        const budget = world.store.list(RESOURCE.budgets).items[0]
        if (!budget) return
        const key = `${budget.metadata.namespace}/${budget.metadata.name}`
        world.faults.closedBudgets.add(key)
        return () => void world.faults.closedBudgets.delete(key)
      }
    }
  },
}

/** Where no machine has ever been; a person wrote it, and so it may be asked. */
export const NOBODYS = '10.5.9.77'
/** The uid of what was there once. */
const GONE = '00000000-0000-4000-8000-000000000000'

/** Somebody writes another holder into the lock, with its uid where it has one, and takes it out again. */
const lend = (stage: Stage, to: string, uid?: string): (() => void) | undefined => {
  const { store } = stage.story.world
  const hold = (holderIdentity: string): void => {
    const lease = store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    if (!lease) return
    const annotations = { ...lease.metadata.annotations, ...(uid === undefined ? {} : { [ANNOTATION.holderUid]: uid }) }
    stage.byHand(undefined, () =>
      store.update(RESOURCE.leases, {
        ...lease,
        metadata: { ...lease.metadata, annotations },
        spec: { ...(lease['spec'] as object), holderIdentity },
      }),
    )
  }
  if (!store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))) return undefined
  hold(to)
  return () => hold('')
}

export const create = (stage: Stage, name: string): void => {
  const draft = stage.plan.operations.find(o => o.name === name)
  if (!draft || stage.story.operation(name)) return
  stage.story.create(draft)
}

const MINUTE = 60_000

/** A tool that applies what is in Git, again and again, a standing wish for a retry among it. */
export const gitops: Trouble<Stage> = {
  family: 'gitops',
  harmless: false,
  draw: ({ random, horizonMs }) => ({
    family: 'gitops',
    what: random.pick(['applies', 'applies with a retry']),
    when: { at: random.between(0, Math.ceil(horizonMs / 4)) },
    forMs: random.between(2 * MINUTE, horizonMs),
  }),
  strike: (stage, { what }) => {
    const { story } = stage
    stage.note(`GitOps ${what} every minute`)
    let isOver = false
    const apply = (): void => {
      if (isOver) return
      for (const { name } of stage.plan.operations) {
        if (!story.operation(name)) create(stage, name)
        else if (what === 'applies with a retry') stage.ask(name, { retry: 'by apply' })
        else story.edit(name, { annotations: { 'example.com/applied': 'yes' } })
      }
      story.world.schedule.after(MINUTE, apply)
    }
    apply()
    return () => {
      isOver = true
    }
  },
}
