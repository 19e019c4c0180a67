import type { DescService } from '@bufbuild/protobuf'
import { grpcPath } from '../../proto/grpc.ts'
import { notYetIn } from '../../src/talossim/methods-by-version.ts'
import { NOT_SIMULATED } from '../../src/talossim/not-simulated.ts'
import { mayCall, ROLES } from '../../src/talossim/roles.ts'
import { code, generatedFrom, page, table } from './markdown.ts'

const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.11', 'v1.13.9', 'v1.14.0-rc.1'] as const

const minorOf = (version: string): string => version.split('.').slice(0, 2).join('.').slice(1)

const whoMay = (path: string, version: string): string =>
  ROLES.filter(role => mayCall(new Set([role]), path, version))
    .map(role => role.slice('os:'.length))
    .join(', ')

/** Who may call a method; where that changed, since when. */
const roles = (path: string): string => {
  const there = VERSIONS.filter(version => notYetIn(version, path) === undefined)
  const steps = there.flatMap((version, at) => {
    const now = whoMay(path, version)
    const before = at === 0 ? undefined : whoMay(path, there[at - 1]!)
    return now === before ? [] : [at === 0 ? now : `from ${minorOf(version)} on ${now}`]
  })
  return steps.join('; ')
}

const since = (path: string): string => {
  const first = VERSIONS.find(version => notYetIn(version, path) === undefined)
  return first === undefined || first === VERSIONS[0] ? '' : minorOf(first)
}

/** Every method of the Talos API, from what the simulated machines go by. */
export const talosMethodsPage = (services: readonly DescService[]): ReadonlyMap<string, string> =>
  new Map([
    [
      'docs/reference/talos-methods.md',
      page(
        generatedFrom('proto and src/talossim'),
        '# Methods of the Talos API on simulated machines',
        'Every method, the minor that is the first to have it (empty: 1.10 and older), the roles that may call it, and what becomes of it. A method that a machine’s version does not have is `Unimplemented` for everybody; a role that is not named gets `PermissionDenied`. [Simulated machines and real ones](../talos.md) says how far the answers can be trusted.',
        ...services.flatMap(service => [
          `## ${service.typeName}`,
          table(
            ['Method', 'Since', 'Roles', 'Simulated'],
            service.methods.map(method => {
              const path = grpcPath(method)
              const refusal = NOT_SIMULATED[path]
              return [code(method.name), since(path), roles(path), refusal === undefined ? 'yes' : `no: ${code(refusal)}`]
            }),
          ),
        ]),
      ),
    ],
  ])
