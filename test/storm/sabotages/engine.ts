import type { Sabotage } from '../spoiling.ts'

/** The shell around it. */
export const engine: readonly Sabotage[] = [
  {
    name: 'skip-the-intention',
    file: 'src/engine/reconcile.ts',
    find: `  const written = await write(engine, operation, status)
  if (!written.ok) return again(engine, operation, 'writing the intention', written.fault)`,
    replace: `  const written = { ok: true as const, value: operation }`,
    caughtBy: 'intention-first',
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
    name: 'remember-what-etcd-said',
    file: 'src/engine/observe.ts',
    find: `await withPort(talos, t => t.etcd(m.spec.address))`,
    replace: `await (((readFacts as unknown as Record<string, unknown>)[m.metadata.name] ??= withPort(talos, t => t.etcd(m.spec.address))) as Promise<never>)`,
    caughtBy: 'gate-is-fresh',
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
    name: 'forget-what-the-loser-did',
    file: 'src/engine/reconcile.ts',
    find: `  return kind && deedsAfter(kind, loser, world)`,
    replace: `  return kind && undefined`,
    caughtBy: 'deeds-are-remembered',
    spec: { kind: 'node', node: { action: 'reboot', machine: 'wk-1' } },
    // It cannot give its lock back for a while, and whoever waits for it may be the first to write the Lease then.
    strikes: [
      { family: 'people', what: 'a crowd of operations', when: { at: 500 }, machine: 3, forMs: 1000 },
      { family: 'answers', what: 'home.replaceLease', word: 'busy', when: { at: 15_500 }, forMs: 20_000 },
    ],
  },
]
