import { type Command, Option } from 'commander'
import type { KubeObject } from '../api.ts'
import { CRD, qualifiedName } from '../resource-types.ts'
import type { Session } from '../session.ts'
import { must } from '../session.ts'
import { Stop } from '../stop.ts'
import type { Shell } from './command.ts'
import { group, withExamples, works } from './command.ts'

const establishedWithinMs = 60_000

export const installCommand = (shell: Shell): Command => {
  const install = group('install', "Install Ichor's resource types (CRDs), or bring them up to date").addOption(
    new Option('--crds-only', 'only the resource types; the controller is run by ichor controller').makeOptionMandatory(),
  )
  withExamples(install, shell, ['install --crds-only'])
  return works(install, shell, session => installCrds(session))
}

const installCrds = async (session: Session): Promise<void> => {
  const { api, outside, terminal } = session
  const crds = await outside.crds()
  for (const crd of crds) {
    const { name } = crd.metadata
    const before = await api.get(CRD, undefined, name)
    const after = must(session, await api.apply(CRD, undefined, name, crd), `install ${name}`)
    const isSame = before.ok && before.value.metadata.generation === after.metadata.generation
    terminal.out(`${qualifiedName(CRD, name)} ${!before.ok ? 'created' : isSame ? 'unchanged' : 'updated'}`)
  }
  await Promise.all(crds.map(crd => established(session, crd.metadata.name)))
}

/** When the API server serves it: a type that is only written down answers 404. */
const established = (session: Session, name: string): Promise<void> => {
  const { api, terminal } = session
  const begun = terminal.now()
  let last = 'not seen yet'
  return new Promise((resolve, reject) => {
    let stopTicking: (() => void) | undefined
    let stopWatching: (() => void) | undefined
    let hasEnded = false
    const end = (stop?: Stop) => {
      hasEnded = true
      stopTicking?.()
      stopWatching?.()
      if (stop) reject(stop)
      else resolve()
    }
    stopTicking = terminal.every(1000, () => {
      if (terminal.now() - begun >= establishedWithinMs)
        end(new Stop('error', `${name} is written but the API server does not serve it: ${last}`))
    })
    stopWatching = api.watch(CRD, undefined, name, sight => {
      if (hasEnded || sight.is !== 'there') return
      const conditions = conditionsOf(sight.object)
      if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) return end()
      last = conditions.map(({ type, status, message }) => `${type}=${status}${message ? ` (${message})` : ''}`).join(', ') || last
    })
    if (hasEnded) stopWatching()
  })
}

const conditionsOf = ({ status }: KubeObject): readonly { readonly type: string; readonly status: string; readonly message?: string }[] => {
  const conditions = (status as { conditions?: unknown } | undefined)?.conditions
  return Array.isArray(conditions) ? conditions : []
}
