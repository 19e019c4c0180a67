import type { Sabotage } from '../spoiling.ts'

const STEPS = 'src/core/machine-steps'

const OPERATOR = {
  name: 'operator',
  replicas: 2,
  graceSeconds: 2,
  on: [3, 4],
  tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }],
}

/** What all kinds share of the steps over a machine. */
export const machineSteps: readonly Sabotage[] = [
  {
    name: 'do-not-look-at-alarms-and-orphans',
    file: `${STEPS}/etcd.ts`,
    find: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass) return YES`,
    replace: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass || verdict.reason === 'EtcdAlarm' || /member/.test(verdict.message)) return YES`,
    caughtBy: 'etcd-is-whole',
    strikes: [{ family: 'etcd', what: 'has an alarm', when: { at: 1500 }, machine: 0, forMs: 240_000 }],
  },
  {
    name: 'two-control-planes-at-once',
    file: `${STEPS}/turn.ts`,
    find: `  if (controlPlane) return wait(`,
    replace: `  if (target.role !== 'controlplane' && controlPlane) return wait(`,
    also: [
      {
        file: `${STEPS}/turn.ts`,
        find: `return openTargets(operation.status).length > 0 ? wait('another machine is open') : othersServe(view)`,
        replace: `return YES`,
      },
    ],
    caughtBy: 'one-control-plane-open',
  },
  {
    name: 'workers-beside-the-last-control-plane',
    file: `${STEPS}/turn.ts`,
    find: `  if (controlPlane) return wait(`,
    replace: `  if (controlPlane && target.role === 'controlplane') return wait(`,
    caughtBy: 'control-planes-first',
  },
  {
    name: 'all-workers-at-once',
    file: `${STEPS}/turn.ts`,
    find: `  return quota.mayOpen(target.name)`,
    replace: `  return quota.mayOpen(target.name) || target.name !== ''`,
    caughtBy: 'workers-within-quota',
  },
  {
    name: 'delete-instead-of-evict',
    file: `${STEPS}/drain.ts`,
    find: `    const evicted = await kube.evict(pod)
    if (!evicted.ok &&`,
    replace: `    const evicted = await kube.deletePod(pod)
    if (!evicted.ok &&`,
    caughtBy: 'evicted-not-deleted',
  },
  {
    name: 'force-a-drain-that-never-asked',
    file: `${STEPS}/setting-aside.ts`,
    find: `  return firstActedAt !== undefined && now - ms(firstActedAt) >= timeout && isAsked`,
    replace: `  return (firstActedAt !== undefined && isAsked) || now - ms(view.target.stepStartedAt) >= timeout`,
    caughtBy: 'evicted-not-deleted',
    spec: { kind: 'node', node: { action: 'reboot', machine: 'wk-1' }, drain: { policy: 'force', timeout: '1m' } },
    setting: { storage: true, twoBudgets: true },
    strikes: [{ family: 'dead', what: 'answers too late', when: { call: 15 }, machine: 3, forMs: 180_000 }],
  },
  {
    name: 'chase-what-is-put-back',
    file: `${STEPS}/drain.ts`,
    find: `  if (toleratesCordon !== true || ownerKind === '') return false`,
    replace: `  if (toleratesCordon !== false) return false`,
    caughtBy: 'harmless-trouble-costs-time-only',
    workloads: [OPERATOR],
  },
  {
    name: 'leave-what-tolerates-the-cordon',
    file: `${STEPS}/drain.ts`,
    find: `(ageMs !== undefined && ageMs + SECOND <= drainingMs)`,
    replace: `ageMs !== undefined`,
    caughtBy: 'drained-before-it-goes',
    workloads: [OPERATOR],
  },
  {
    name: 'wait-for-volumes-that-stay',
    file: `${STEPS}/drain.ts`,
    find: `(v.claim === undefined || !kept.has(v.claim))`,
    replace: `v.name !== ''`,
    caughtBy: 'harmless-trouble-costs-time-only',
    workloads: [{ name: 'logs', daemon: true, volume: true }],
  },
  {
    name: 'wait-for-no-volume',
    file: `${STEPS}/drain.ts`,
    find: `(v.claim === undefined || !kept.has(v.claim))`,
    replace: `v.name === ''`,
    caughtBy: 'drained-before-it-goes',
    // One of them is slow enough to be seen.
    workloads: ['a', 'b', 'c', 'd'].map(name => ({ name, volume: true, graceSeconds: 1, on: [3] })),
  },
  {
    name: 'ignore-the-etcd-gate',
    file: `${STEPS}/etcd.ts`,
    find: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass) return YES`,
    replace: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass || verdict.kind === 'hold') return YES`,
    also: [
      {
        file: `${STEPS}/other-control-planes.ts`,
        find: `  if (target.role !== 'controlplane' || operation.spec.override) return YES`,
        replace: `  if (operation.spec.kind !== '') return YES`,
      },
    ],
    caughtBy: 'other-members-serve',
    strikes: [{ family: 'dead', what: 'is cut off', when: { at: 5000 }, machine: 2, forMs: 240_000 }],
  },
  {
    name: 'take-a-drain-for-done',
    file: `${STEPS}/drain.ts`,
    find: `  const node = nodeToDrain(view)
  const pods = leaving(view, isPast)`,
    replace: `  const node = nodeToDrain(view)
  if (node !== '') return YES
  const pods = leaving(view, isPast)`,
    caughtBy: 'drained-before-it-goes',
  },
  {
    name: 'ignore-holds',
    file: `${STEPS}/order.ts`,
    find: `  if (hold === undefined) return undefined`,
    replace: `  if (hold === undefined || hold === 'true') return undefined`,
    caughtBy: 'held-machine-is-left',
    strikes: [{ family: 'people', what: 'hold', when: { at: 1000 }, machine: 4 }],
  },
  {
    name: 'two-control-planes-away',
    file: `${STEPS}/turn.ts`,
    find: `  if (controlPlane) return wait(`,
    replace: `  if (target.role !== 'controlplane' && controlPlane) return wait(`,
    also: [
      {
        file: `${STEPS}/other-control-planes.ts`,
        find: `  if (target.role !== 'controlplane' || operation.spec.override) return YES`,
        replace: `  if (operation.spec.kind !== '') return YES`,
      },
      {
        file: `${STEPS}/turn.ts`,
        find: `return openTargets(operation.status).length > 0 ? wait('another machine is open') : othersServe(view)`,
        replace: `return YES`,
      },
      {
        file: `${STEPS}/etcd.ts`,
        find: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass) return YES`,
        replace: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass || verdict.kind === 'hold') return YES`,
      },
    ],
    caughtBy: 'one-control-plane-away',
    isAlone: true,
  },
  {
    name: 'take-a-second-name-for-another-machine',
    file: `${STEPS}/turn.ts`,
    find: `...(status.nodeName || status.nodeID ? {} : { unseen: true }),`,
    replace: ``,
    also: [
      {
        file: `${STEPS}/opening.ts`,
        find: `const twin = machine.status.nodeID ? undefined :`,
        replace: `const twin = machine.metadata.name !== '' ? undefined :`,
      },
    ],
    caughtBy: 'workers-within-quota',
    spec: { kind: 'kubernetes', maxUnavailable: '67%', kubernetes: { version: 'v1.36.3' } },
    strikes: [
      { family: 'objects', what: 'writes a second machine object for a machine', when: { at: 50_000 }, machine: 4, forMs: 600_000 },
    ],
  },
  {
    name: 'act-in-another-boot',
    file: `${STEPS}/guards.ts`,
    find: `  if (facts.value.bootID !== view.target.before?.bootID) return wait(`,
    replace: `  if (facts.value.bootID === '') return wait(`,
    caughtBy: 'boot-as-recorded',
    controlPlanes: 4,
    spec: { kind: 'node', node: { machine: 'cp-3', action: 'reset', rebootAfter: true } },
    strikes: [{ family: 'people', what: 'reboot', when: { at: 13_000 }, machine: 2 }],
  },
]
