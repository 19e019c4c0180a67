import type { Sabotage } from '../spoiling.ts'

/** What is owed to each machine while an operation stops, and while it stands there. */
export const stopping: readonly Sabotage[] = [
  {
    name: 'ask-the-first-alone',
    file: 'src/core/together.ts',
    find: `  const open = openTargets(operation.status)
`,
    replace: `  const open = openTargets(operation.status).slice(0, 1)
`,
    caughtBy: 'open-machines-are-all-asked',
    strikes: [{ family: 'reboot', what: 'never ends', when: { at: 0 }, machine: 3, forMs: 590_000 }],
    spec: { kind: 'talos', talos: { version: 'v1.13.9' }, maxUnavailable: 2 },
  },
  {
    name: 'forget-whom-it-cordoned',
    file: 'src/core/closing.ts',
    find: `.filter(isMarked)`,
    replace: `.filter(view => isMarked(view) && view.operation.spec.cancelled)`,
    caughtBy: 'stopped-gives-back',
    strikes: [
      { family: 'answers', what: 'kube.nodes', when: { at: 1000 }, word: 'unreachable', forMs: 60_000 },
      { family: 'people', what: 'pause', when: { at: 1000 }, forMs: 590_000 },
    ],
    spec: { kind: 'node', node: { action: 'reboot', machine: 'wk-1' } },
  },
]
