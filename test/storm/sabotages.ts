import { ADDED } from '../../src/storm/operations.ts'
import type { Draft, Plan, Strike } from '../../src/storm/plan.ts'
import type { Setting } from '../../src/storm/setting.ts'

type Spoiling = {
  readonly file: string
  /** Has to be in the file exactly once. */
  readonly find: string
  readonly replace: string
}

/** One line of the source spoiled, and who finds it out. */
export type Sabotage = Spoiling & {
  readonly name: string
  /** Where a second line of defence stands behind the first, it is spoiled too. */
  readonly also?: readonly Spoiling[]
  readonly caughtBy: string
  /** Another checker would find it first, and looks away. */
  readonly isAlone?: true
  /** What happens meanwhile; nothing where absent. */
  readonly strikes?: readonly Strike[]
  readonly replicas?: number
  readonly controlPlanes?: number
  readonly talos?: string
  /** What is asked for; an upgrade of Talos where absent. */
  readonly spec?: Draft['spec']
  readonly isPlanned?: boolean
  readonly setting?: Setting
}

const rollout = (mode: string): Draft['spec'] => ({
  kind: 'config',
  config: { mode, patches: [{ inline: `machine:\n  certSANs:\n    - ${ADDED}\n` }] },
})

const UPGRADE: Draft['spec'] = { kind: 'talos', talos: { version: 'v1.13.9' } }

/** The run in which it is found: with 3+2 machines, where it does not want fewer. */
export const planOf = ({
  strikes = [],
  replicas = 1,
  controlPlanes = 3,
  talos = 'v1.13.5',
  spec = UPGRADE,
  isPlanned = false,
  setting,
}: Sabotage): Plan => ({
  seed: 1,
  kind: spec.kind,
  shape: {
    ...{ controlPlanes, workers: 2, talos, kubernetes: 'v1.36.2', haste: 8, homeOutside: true, replicas },
    workloads: [
      { name: 'web', replicas: 2, graceSeconds: 10, on: [controlPlanes, controlPlanes + 1] },
      { name: 'db', volume: true, graceSeconds: 10, on: [controlPlanes] },
    ],
    ...(setting ? { setting } : {}),
  },
  operations: [{ name: 'op', spec }],
  strikes,
  horizonMs: 600_000,
  resumes: false,
  isPlanned,
})

const STEPS = 'src/core/machine-steps'

/** The next machine is not begun while the storage system says that it is not well. */
const WATCHED_STORAGE: Setting = {
  gates: [
    {
      name: 'ceph',
      expr: 'status.ceph.health == "HEALTH_OK"',
      objectRef: { apiVersion: 'ceph.rook.io/v1', kind: 'CephCluster', namespace: 'rook-ceph', name: 'main' },
      stableFor: '5s',
    },
  ],
}

export const sabotages: readonly Sabotage[] = [
  {
    name: 'believe-an-edited-status',
    file: 'src/core/decide.ts',
    find: `if (why !== undefined)`,
    replace: `if (why === '')`,
    caughtBy: 'one-control-plane-open',
    strikes: [{ family: 'status', what: 'a phase that does not exist', when: { at: 5000 }, forMs: 100_000 }],
  },
  {
    name: 'let-terms-differ',
    file: 'src/core/etcd-gate.ts',
    find: `if (terms.size > 1)`,
    replace: `if (terms.size > 9)`,
    caughtBy: 'odd-etcd-is-heeded',
    strikes: [{ family: 'etcd-says', what: 'is in another term', when: { at: 0 }, machine: 1, forMs: 100_000 }],
  },
  {
    name: 'begin-past-the-gates',
    file: 'src/core/rolling-out.ts',
    find: `if (gates.are === 'closed') return`,
    replace: `if (gates.are === 'closed' && world.cluster.spec.healthGates === undefined) return`,
    caughtBy: 'gates-hold-before-a-machine',
    setting: WATCHED_STORAGE,
    strikes: [{ family: 'gates', what: 'is degraded', when: { at: 90_000 }, forMs: 200_000 }],
  },
  {
    name: 'skip-the-intention',
    file: 'src/engine/reconcile.ts',
    find: `  const written = await write(engine, operation, status)
  if (!written.ok) return again(engine, operation, 'writing the intention', written.fault)`,
    replace: `  const written = { ok: true as const, value: operation }`,
    caughtBy: 'intention-first',
  },
  {
    name: 'trust-an-ok',
    file: 'src/kinds/talos/restart.ts',
    find: `  done: restarted,
  guard: view => both(mayRestart(view), () => gateGuard(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: false,`,
    replace: `  done: view => (view.target.actedAt ? { is: 'yes', may: 'yes' } : restarted(view)),
  guard: view => both(mayRestart(view), () => gateGuard(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: false,`,
    caughtBy: 'harmless-trouble-costs-time-only',
  },
  {
    name: 'forget-the-boot-id',
    file: 'src/kinds/talos/evidence.ts',
    find: `  if (bootID === view.target.before?.bootID) return no(`,
    replace: `  if (bootID !== '') return no(`,
    caughtBy: 'harmless-trouble-costs-time-only',
  },
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
        find: `return openTargets(operation.status).length > 0 ? wait('another machine is open') : YES`,
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
    name: 'act-after-losing-leadership',
    file: 'src/engine/leader.ts',
    find: `leading && clock.monotonic() - renewedAt < RENEW_DEADLINE_MS`,
    replace: `leading`,
    caughtBy: 'only-the-leader-acts',
    replicas: 3,
    strikes: Array.from({ length: 30 }, (_, i) => 10 * (i + 1)).map(call => ({
      family: 'leaders',
      what: 'frozen at a call',
      when: { call },
      forMs: 30_000,
    })),
  },
  {
    name: 'steal-the-lock-of-a-stranger',
    file: 'src/core/lock-claim.ts',
    find: `  if (!holder) return 'it is none of ours, so it is left alone'`,
    replace: `  if (!holder) return undefined`,
    caughtBy: 'lock-is-not-stolen',
    strikes: [{ family: 'people', what: 'edit lease', when: { at: 10_000 }, forMs: 60_000 }],
  },
  {
    name: 'read-the-lock-from-a-cache',
    file: 'src/engine/cluster-lock.ts',
    find: `  const found = await home.lease({ namespace, name: leaseName(cluster) })`,
    replace: `  const cache = home as unknown as { kept?: Awaited<ReturnType<Home['lease']>> }
  const found = cache.kept ?? (await home.lease({ namespace, name: leaseName(cluster) }))
  if (found.ok && found.value.holder.includes('/op/')) cache.kept = found`,
    caughtBy: 'lock-is-held',
    strikes: [{ family: 'people', what: 'edit lease', when: { at: 10_000 }, forMs: 200_000 }],
  },
  {
    name: 'keep-the-lock-for-ever',
    file: 'src/core/decide.ts',
    find: `  if (!isFinished(operation.status.phase)) return undefined
  if (holdsLock(operation, world)) {`,
    replace: `  if (!isFinished(operation.status.phase)) return undefined
  if (holdsLock(operation, world) && operation.spec.paused) {`,
    caughtBy: 'lock-is-free-in-the-end',
  },
  {
    name: 'close-before-it-is-back',
    file: 'src/kinds/talos/after-restart.ts',
    find: `[verify, nodeReady, apiServer, settled, uncordon, recordImage, soak]`,
    replace: `[uncordon, recordImage]`,
    caughtBy: 'closed-only-when-back',
  },
  {
    name: 'done-whatever-it-runs',
    file: 'src/kinds/talos/after-restart.ts',
    find: `    if (wrong) return wrong`,
    replace: ``,
    caughtBy: 'done-is-observed',
    strikes: [{ family: 'installer', what: 'boots the old slot', when: { at: 1000 }, machine: 0, times: 1, forMs: 400_000 }],
  },
  {
    name: 'delete-instead-of-evict',
    file: `${STEPS}/setting-aside.ts`,
    find: `deleteAll(kube, view) : evictAll(kube, view)`,
    replace: `deleteAll(kube, view) : deleteAll(kube, view)`,
    caughtBy: 'evicted-not-deleted',
  },
  {
    name: 'no-finalizer',
    file: 'src/core/rolling-out.ts',
    find: `  if (open.length > 0 && !hasFinalizer(operation)) return { do: 'add-finalizer' }`,
    replace: ``,
    caughtBy: 'gone-leaves-nothing-open',
    strikes: [{ family: 'people', what: 'delete operation', when: { at: 6000 } }],
  },
  {
    name: 'go-on-while-paused',
    file: 'src/core/decide.ts',
    find: `  if (!spec.paused)
    return status.phase`,
    replace: `  if (spec.kind !== '')
    return status.phase`,
    caughtBy: 'stopped-begins-nothing',
    strikes: [{ family: 'people', what: 'pause', when: { at: 6000 }, forMs: 590_000 }],
  },
  {
    name: 'honour-an-applied-retry-each-time',
    file: 'src/core/decide.ts',
    find: `  if (manager !== undefined && status.appliedRetry) {`,
    replace: `  if (manager === '' && status.appliedRetry) {`,
    caughtBy: 'a-retry-counts-once',
    strikes: [
      { family: 'gitops', what: 'applies with a retry', when: { at: 1000 }, forMs: 590_000 },
      { family: 'installer', what: 'fails', when: { at: 500 }, machine: 0, times: 3, forMs: 590_000 },
      { family: 'installer', what: 'fails', when: { at: 500 }, machine: 1, times: 3, forMs: 590_000 },
      { family: 'installer', what: 'fails', when: { at: 500 }, machine: 2, times: 3, forMs: 590_000 },
    ],
  },
  {
    name: 'call-another-address',
    file: 'src/kinds/talos/restart.ts',
    find: `talos.reboot(addressOf(view), mode(view))`,
    replace: `talos.reboot('10.5.0.100', mode(view))`,
    caughtBy: 'own-address',
  },
  {
    name: 'ignore-the-etcd-gate',
    file: `${STEPS}/etcd.ts`,
    find: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass) return YES`,
    replace: `export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass || verdict.kind === 'hold') return YES`,
    caughtBy: 'other-members-serve',
    strikes: [{ family: 'dead', what: 'is cut off', when: { at: 5000 }, machine: 2, forMs: 240_000 }],
  },
  {
    name: 'remember-what-etcd-said',
    file: 'src/engine/observe.ts',
    find: `await withPort(talos, t => t.etcd(m.spec.address))`,
    replace: `await (((readFacts as unknown as Record<string, unknown>)[m.metadata.name] ??= withPort(talos, t => t.etcd(m.spec.address))) as Promise<never>)`,
    caughtBy: 'gate-is-fresh',
  },
  {
    name: 'take-an-outage-for-acknowledged',
    file: 'src/core/etcd-gate.ts',
    find: `if (isSmall && acknowledged.includes('api-outage')) return []`,
    replace: `if (isSmall) return []`,
    caughtBy: 'outage-is-acknowledged',
    controlPlanes: 1,
  },
  {
    name: 'reboot-what-is-stopping',
    file: 'src/kinds/talos/evidence.ts',
    find: `  const verdict = asRecorded(view)`,
    replace: `  const verdict: Verdict = YES`,
    caughtBy: 'reboots-once',
    strikes: [{ family: 'reboot', what: 'never stops its pods', when: { at: 1000 }, machine: 3, forMs: 590_000 }],
  },
  {
    name: 'install-once-more',
    file: 'src/kinds/talos/evidence.ts',
    find: `!isTriedAnew(view) && wasInstalled(view)`,
    replace: `!isTriedAnew(view) && wasInstalled(view) && (view.target.attempts ?? 0) > 1`,
    caughtBy: 'installs-once',
  },
  {
    name: 'take-a-drain-for-done',
    file: `${STEPS}/drain.ts`,
    find: `  if (node === undefined) return YES
  const pods = leaving(view, node)`,
    replace: `  if (node !== '') return YES
  const pods = leaving(view, node)`,
    caughtBy: 'drained-before-it-goes',
  },
  {
    name: 'uncordon-all',
    file: 'src/engine/discover.ts',
    find: `n.annotations[ANNOTATION.cordonedBy] !== undefined && n.ready`,
    replace: `n.unschedulable && n.ready`,
    also: [
      {
        file: 'src/api/cordon-owner.ts',
        find: `unschedulable && isOnlyOurs ? annotations[ANNOTATION.cordonedBy] : undefined`,
        replace: `unschedulable ? 'an operation' : undefined`,
      },
    ],
    caughtBy: 'foreign-cordons-stay',
    strikes: [{ family: 'people', what: 'cordon', when: { at: 1000 }, machine: 4 }],
  },
  {
    name: 'take-the-mark-for-a-proof',
    file: 'src/api/cordon-owner.ts',
    find: `return unschedulable && isOnlyOurs ?`,
    replace: `return unschedulable ?`,
    caughtBy: 'foreign-cordons-stay',
    strikes: [
      { family: 'people', what: 'uncordon', when: { at: 60_000 }, machine: 3 },
      { family: 'people', what: 'cordon', when: { at: 65_000 }, machine: 3 },
    ],
    // It stays cordoned while it is off.
    spec: { kind: 'node', node: { action: 'shutdown', machine: 'wk-1' } },
  },
  {
    name: 'sweep-the-cordon-of-one-that-works',
    file: 'src/engine/discover.ts',
    find: `    if (isWorking(node)) continue`,
    replace: ``,
    caughtBy: 'cordons-are-given-back',
  },
  {
    name: 'forget-a-cordon',
    file: 'src/engine/discover.ts',
    find: `  if (marked.length === 0) return`,
    replace: `  if (marked.length >= 0) return`,
    caughtBy: 'cordons-are-given-back',
    spec: { kind: 'node', node: { machine: 'wk-2', action: 'shutdown' } },
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
    name: 'take-the-lock-whoever-has-it',
    file: 'src/core/lock-claim.ts',
    find: `  const { lock } = world
`,
    replace: `  const { lock } = world
  if (lock && operation.metadata.name === 'another') return { may: 'take', from: lock.holder || undefined }
`,
    caughtBy: 'lock-is-not-stolen',
    strikes: [{ family: 'people', what: 'another operation', when: { at: 500 } }],
  },
  {
    name: 'take-the-lock-of-the-paused',
    file: 'src/core/lock-claim.ts',
    find: `  if (spec.paused) return 'its operator paused it'`,
    replace: `  if (spec.paused) return undefined`,
    caughtBy: 'lock-is-not-stolen',
    strikes: [
      { family: 'people', what: 'pause', when: { at: 6000 }, forMs: 590_000 },
      { family: 'people', what: 'another operation', when: { at: 100_000 } },
    ],
  },
  {
    name: 'never-say-the-same-twice',
    file: 'src/engine/reconcile.ts',
    find: `      const next = await record(engine, operation, decision.status)
      return next.failed ? next : { againMs: decision.forMs }`,
    replace: `      const next = await record(engine, operation, { ...decision.status, message: \`It waits at \${Math.random()}.\` })
      return next.failed ? next : { againMs: 200 }`,
    caughtBy: 'sizes-are-bounded',
  },
  {
    name: 'forget-to-look-again',
    file: 'src/engine/reconcile.ts',
    find: `return next.failed ? next : { againMs: decision.forMs }`,
    replace: `return next.failed ? next : {}`,
    caughtBy: 'waits-for-no-event',
  },
  {
    name: 'wait-without-saying-since-when',
    file: 'src/core/ledger.ts',
    find: `const wait = { for: short(message), since,`,
    replace: `const wait = { for: short(message), since: '',`,
    caughtBy: 'every-wait-has-words',
  },
  {
    name: 'take-another-member-out',
    file: 'src/kinds/node/reset.ts',
    find: `? await talos.leaveEtcd(addressOf(view), call)`,
    replace: `? await talos.removeMember(addressOf(view), peer?.view.ok ? peer.view.value.status.memberID : '')`,
    caughtBy: 'reset-as-recorded',
    controlPlanes: 4,
    spec: { kind: 'node', node: { machine: 'cp-3', action: 'reset' } },
  },
  {
    name: 'keep-the-finalizer',
    file: 'src/core/decide.ts',
    find: `  if (hasFinalizer(operation)) return { do: 'drop-finalizer' }
`,
    replace: ``,
    caughtBy: 'liveness',
  },
  {
    name: 'two-control-planes-away',
    file: `${STEPS}/turn.ts`,
    find: `  if (controlPlane) return wait(`,
    replace: `  if (target.role !== 'controlplane' && controlPlane) return wait(`,
    also: [
      {
        file: `${STEPS}/turn.ts`,
        find: `return openTargets(operation.status).length > 0 ? wait('another machine is open') : YES`,
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
    name: 'go-on-past-a-failed-control-plane',
    file: 'src/core/ledger.ts',
    find: `  return told({ ...paused(next, reason, message), lastFailure: failure }, now,`,
    replace: `  return told({ ...next, message, lastFailure: failure }, now,`,
    also: [
      {
        file: `${STEPS}/turn.ts`,
        find: `(t.phase === 'Running' || t.phase === 'Failed')`,
        replace: `t.phase === 'Running'`,
      },
    ],
    caughtBy: 'failed-control-plane-freezes',
    strikes: [{ family: 'installer', what: 'fails', when: { at: 500 }, machine: 1, times: 3, forMs: 590_000 }],
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
  {
    name: 'keep-the-lock-when-refused',
    file: 'src/core/decide.ts',
    find: `    return holdsLock(operation, world) ? { do: 'release' } : hasFinalizer(operation)`,
    replace: `    return hasFinalizer(operation)`,
    caughtBy: 'refused-touches-nothing',
    strikes: [{ family: 'etcd', what: 'has an alarm', when: { call: 4 }, machine: 0, forMs: 590_000 }],
  },
  {
    name: 'past-a-minor',
    file: 'src/core/compatibility/verdict.ts',
    find: `  if (Math.abs(minorSteps(a, b) ?? 0) > 1)`,
    replace: `  if (Math.abs(minorSteps(a, b) ?? 0) > 9)`,
    caughtBy: 'path-is-legal',
    talos: 'v1.11.6',
    spec: { kind: 'talos', talos: { version: 'v1.13.9' } },
  },
  {
    name: 'back-to-an-older-version',
    file: 'src/kinds/talos/checks.ts',
    find: `    ...direction(mine, spec.version),`,
    replace: ``,
    also: [
      {
        file: 'src/kinds/talos/rollout.ts',
        find: `compareVersions(running, wanted) > 0 && !operation.spec.override`,
        replace: `compareVersions(running, wanted) > 9`,
      },
    ],
    caughtBy: 'path-is-legal',
    talos: 'v1.13.9',
    spec: { kind: 'talos', talos: { version: 'v1.13.5' } },
  },
  {
    name: 'refuse-for-nothing',
    file: 'src/kinds/talos/checks.ts',
    find: `wish === 'required' && controlPlanesOf`,
    replace: `wish !== 'skip' && controlPlanesOf`,
    caughtBy: 'harmless-trouble-costs-time-only',
    spec: { kind: 'talos', override: true, talos: { version: 'v1.13.9' } },
  },
  {
    name: 'do-without-the-snapshot',
    file: 'src/kinds/talos/checks.ts',
    find: `    ...snapshot(spec.snapshot, world),`,
    replace: ``,
    caughtBy: 'snapshot-is-told',
    spec: { kind: 'talos', talos: { version: 'v1.13.9', snapshot: 'required' } },
  },
  {
    name: 'say-nothing-of-the-snapshot',
    file: 'src/kinds/node/checks.ts',
    find: `so no etcd snapshot is taken first; \`talosctl etcd snapshot\` takes one.`,
    replace: `and that is that.`,
    caughtBy: 'snapshot-is-told',
    controlPlanes: 4,
    spec: { kind: 'node', node: { machine: 'cp-3', action: 'reset' } },
  },
  {
    name: 'leave-who-failed-without-a-way-on',
    file: 'src/core/follow-up.ts',
    find: `    case 'failed':
      return [resume(`,
    replace: `    case 'failed':
      if (status.phase) return []
      return [resume(`,
    caughtBy: 'told-as-it-is',
    strikes: [{ family: 'installer', what: 'fails', when: { at: 500 }, machine: 1, times: 3, forMs: 590_000 }],
  },
  {
    name: 'plan-by-doing',
    file: 'src/engine/plan.ts',
    find: `  const operation = imagined(namespace, name, spec)
`,
    replace: `  const operation = imagined(namespace, name, spec)
  await observer.home.event({ regarding: { kind: 'TalosOperation', namespace, name, uid: '' }, type: 'Normal', reason: 'Planned', message: 'x' })
`,
    caughtBy: 'plans-only-read',
    isPlanned: true,
  },
  {
    name: 'kubelets-before-api-servers',
    file: 'src/kinds/kubernetes/kubernetes.ts',
    find: '[pullStage, ...STATIC_COMPONENTS.map(staticPodStage), kubeProxyStage, kubeletStage, manifestsStage]',
    replace: '[pullStage, kubeletStage, ...STATIC_COMPONENTS.map(staticPodStage), kubeProxyStage, manifestsStage]',
    also: [
      {
        file: 'src/kinds/kubernetes/view.ts',
        find: 'if ((versionOrder(runs, version) ?? -1) < 0) return',
        replace: 'if ((versionOrder(runs, version) ?? -1) < -9) return',
      },
    ],
    caughtBy: 'nothing-is-newer-than-an-api-server',
    spec: { kind: 'kubernetes', kubernetes: { version: 'v1.36.3' } },
  },
  {
    name: 'static-pod-done-when-written',
    file: 'src/kinds/kubernetes/static-pods.ts',
    find: '    const answer = runsAsWanted(view, component, wantedImage(view))\n',
    replace: '    const answer: Answer = YES\n',
    also: [
      {
        file: 'src/kinds/kubernetes/static-pods.ts',
        find: 'isProved(view, component) ? undefined : STEADY_POLLS * view.world.timing.pollMs',
        replace: 'undefined',
      },
    ],
    caughtBy: 'one-static-pod-at-a-time',
    spec: { kind: 'kubernetes', kubernetes: { version: 'v1.36.3' } },
  },
  {
    name: 'forget-the-api-server-of-the-scheduler',
    file: 'src/kinds/kubernetes/static-pods.ts',
    find: "return answer.is === 'yes' && component !== 'kube-apiserver' ? runsAsRendered(view, 'kube-apiserver') : answer",
    replace: 'return answer',
    caughtBy: 'one-static-pod-at-a-time',
    spec: { kind: 'kubernetes', kubernetes: { version: 'v1.36.3' } },
  },
  {
    name: 'forget-the-static-pods-of-the-kubelet',
    file: 'src/kinds/kubernetes/kubelet.ts',
    find: '    staticPods,\n    uncordon,\n',
    replace: '    uncordon,\n',
    caughtBy: 'one-static-pod-at-a-time',
    spec: { kind: 'kubernetes', override: true, kubernetes: { version: 'v1.37.0' } },
  },
  {
    name: 'leave-the-schedulers',
    file: 'src/kinds/kubernetes/kubernetes.ts',
    find: '...STATIC_COMPONENTS.map(staticPodStage)',
    replace: '...STATIC_COMPONENTS.slice(0, 2).map(staticPodStage)',
    also: [{ file: 'src/kinds/kubernetes/manifests.ts', find: 'if (left.length > 0) return', replace: 'if (left.length > 99) return' }],
    caughtBy: 'all-have-the-version',
    spec: { kind: 'kubernetes', kubernetes: { version: 'v1.36.3' } },
  },
  {
    name: 'patch-until-the-deadline',
    file: 'src/kinds/config/apply.ts',
    find: "done: view => hasIt(view, 'the patched configuration is not applied yet')",
    replace: "done: () => no('the patched configuration is not applied yet')",
    also: [
      {
        file: 'src/kinds/config/apply.ts',
        find: 'return both(isAsComputed(view), () =>',
        replace: 'return both(YES, () =>',
      },
      { file: 'src/kinds/config/apply.ts', find: "return held === 'other' ? changedByOthers(view) : YES", replace: 'return YES' },
    ],
    caughtBy: 'patched-once',
    isAlone: true,
    spec: rollout('no-reboot'),
  },
  {
    name: 'record-another-hash',
    file: 'src/kinds/config/rollout.ts',
    find: 'computed: sha256(wish.to)',
    replace: 'computed: sha256(`${wish.to} `)',
    also: [
      {
        file: 'src/kinds/config/rollout.ts',
        find: 'sha256(wish.to) !== recorded(view).computed',
        replace: 'recorded(view).computed === undefined',
      },
      { file: 'src/kinds/config/apply.ts', find: 'return both(isAsComputed(view), () =>', replace: 'return both(YES, () =>' },
    ],
    caughtBy: 'configuration-as-computed',
    spec: rollout('no-reboot'),
  },
  {
    name: 'everybody-at-once',
    file: 'src/kinds/config/rollout.ts',
    find: "if (canary && canary.phase !== 'Completed') return wait(`${displayName(canary)} goes first, alone`)",
    replace: "if (canary && canary.phase !== 'Completed' && isControlPlane(view)) return YES",
    caughtBy: 'canary-first',
    isAlone: true,
    spec: rollout('no-reboot'),
  },
  {
    name: 'show-only-the-next',
    file: 'src/kinds/config/checks.ts',
    find: 'return [...known, ...shown]',
    replace: 'return shown.length < 0 ? shown : known',
    caughtBy: 'shown-before-the-first-write',
    spec: rollout('no-reboot'),
  },
  {
    name: 'applied-when-asked',
    file: 'src/kinds/config/apply.ts',
    find: "done: view => hasIt(view, 'the patched configuration is not applied yet')",
    replace: 'done: () => YES',
    caughtBy: 'done-has-the-configuration',
    spec: rollout('no-reboot'),
  },
]
