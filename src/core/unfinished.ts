import type { TalosOperation } from '../api/talos-operation.ts'
import type { Refusal } from './kind.ts'
import { targetsOf } from './ledger.ts'
import type { World } from './world.ts'
import { displayName } from './world.ts'

/** Machines that an operation of another kind has not brought to their end since it did what cannot be undone. Never yields to override. */
export const unfinishedByOthers = (operation: TalosOperation, world: World): readonly Refusal[] =>
  world.others
    .filter(o => o.spec.kind !== operation.spec.kind && o.status.phase !== 'Completed')
    .flatMap(o =>
      targetsOf(o.status)
        .filter(t => (t.phase === 'Failed' || t.phase === 'Running') && t.committed !== undefined)
        .map(({ phase, step = phase, ...t }) => ({
          rule: 'UnfinishedOperation',
          machine: t.name,
          message: `${displayName(t)} is half done by the ${o.spec.kind} operation ${o.metadata.name} (${step}). ${
            o.status.phase === 'Cancelled'
              ? 'Delete that operation once the machine is as it should be.'
              : `Let that one finish first: \`ichor operation get ${o.metadata.name}\` says what it waits for.`
          }`,
          overridable: false,
        })),
    )
