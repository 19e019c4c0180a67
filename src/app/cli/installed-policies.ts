// The admission policies that an earlier installation wrote.
import { POLICY_TYPES } from '../../adapters/kube/policies.ts'
import { isOurs, typeOf } from '../../install/installation.ts'
import { POLICY } from '../../install/policies.ts'
import type { Wanted } from './install-objects.ts'
import { isPolicy, lookAt, nameOf } from './install-writes.ts'
import type { Session } from './session.ts'
import { typed } from './typed.ts'

/** Where somebody runs the controller himself, the policies tell as whom. */
export const userOfPolicies = async ({ api }: Session): Promise<string | undefined> => {
  const found = await api.get(POLICY_TYPES['ValidatingAdmissionPolicy']!, undefined, POLICY.status)
  return found.ok ? /request\.userInfo\.username == '([^']+)'/.exec(JSON.stringify(found.value.spec))?.[1] : undefined
}

/** An installation without policies takes none away: says which there are, whom they let write, and how they go. */
export const tellStaying = async (session: Session, wanted: Wanted): Promise<void> => {
  if (wanted.policies) return
  const all = (await session.outside.installed({ ...wanted, policies: true })).map(object => ({ type: typeOf(object as never), object }))
  const { found } = await lookAt(
    session,
    all.filter(({ type }) => isPolicy(type)),
  )
  const staying = found.filter(({ now }) => now && isOurs(now.metadata.labels))
  if (staying.length === 0) return
  for (const { type, object } of staying) session.terminal.out(`${nameOf(type, object)} stays`)
  const user = await userOfPolicies(session)
  const names = staying.map(({ type, object }) => `${type.plural}/${object.metadata.name}`)
  session.terminal.err(
    `--without-policies leaves the policies that are here as they are${user === undefined ? '' : `; they let the controller write that runs as ${user}`}. They go with: ${typed(`kubectl delete ${names.join(' ')}`, session.outside.calledAs, session.choice)}`,
  )
}
