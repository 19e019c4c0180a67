// docs/doctor.md tells of every look, in the order in which it is told.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { clusterLooks, onboardingLooks } from '../../src/core/looks/cluster-looks.ts'
import { installationLooks } from '../../src/core/looks/installation-looks.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'doctor.md'), 'utf8')
const section = (title: string): string => page.split(/^## /m).find(part => part.startsWith(title)) ?? ''
const rows = (title: string): readonly string[] =>
  [...section(title).matchAll(/^\| ([^|]+) \|/gm)].map(([, name = '']) => name.trim()).filter(name => name !== 'look')
const namesOf = (looks: readonly { readonly name: string }[]): readonly string[] => looks.map(({ name }) => name)

it('has a row for each look at an installation and at a cluster', () => {
  expect(rows('The installation')).toEqual(namesOf(installationLooks))
  expect(rows('A cluster')).toEqual(namesOf(clusterLooks))
})

it('names the looks that are made before a cluster is added', () => {
  const said = /makes the looks ([^.]*?) before/.exec(section('Before a cluster is added').replaceAll('\n', ' '))?.[1]
  expect(said?.split(/, | and /)).toEqual(namesOf(onboardingLooks))
})
