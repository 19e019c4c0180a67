import { expect, it } from 'vitest'
import { roleHints } from './roles-with.ts'

const refused = (verb: string, resource: string, group: string): string =>
  `${resource} is forbidden: User "ada" cannot ${verb} resource "${resource}" in API group "${group}" in the namespace "ichor-system"`

it.each([
  [
    'whoever sees nothing',
    refused('list', 'talosoperations', 'ichor.maesh.dev'),
    /one of the ClusterRoles ichor-viewer, ichor-operator or ichor-admin\.$/,
  ],
  ['a viewer', refused('create', 'talosoperations', 'ichor.maesh.dev'), /one of the ClusterRoles ichor-operator or ichor-admin\.$/],
  ['an operator', refused('create', 'talosclusters', 'ichor.maesh.dev'), /for the ClusterRole ichor-admin\.$/],
  ['an admin, whom no role of Ichor helps', refused('get', 'secrets', ''), /^None of Ichor's own ClusterRoles has that right/],
  ['one who is told in other words', 'not today', /ichor-viewer, ichor-operator or ichor-admin\.$/],
])('names to %s the roles that have the right', (_, refusal, hint) => {
  expect(roleHints(refusal)).toEqual([expect.stringMatching(hint)])
})

it('adds nothing to a policy that names the role', () => {
  expect(roleHints('ada needs the verb start on talosoperations/node-reset; the ClusterRole ichor-admin has it')).toEqual([])
})
