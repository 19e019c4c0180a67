import { stringify } from 'yaml'
import { GROUP } from '../../src/api/names.ts'
import type { ResourceDefinition } from '../../src/api/schema.ts'
import { toCrd } from '../../src/api/structural.ts'
import type { Files } from './files.ts'

export const crdFolder = 'charts/ichor/crds'

// YAML 1.1, because Go's readers take an unquoted n, y, on or off for a boolean, as a key too.
const yaml = { version: '1.1', compat: 'yaml-1.1', lineWidth: 140, aliasDuplicateObjects: false } as const

/** One file for each CustomResourceDefinition, for the chart. */
export const crdFiles = (resources: readonly ResourceDefinition[]): Files =>
  new Map(
    resources.map(resource => [
      `${crdFolder}/${GROUP}_${resource.plural}.yaml`,
      `# Generated from src/api by npm run generate; do not edit.\n${stringify(toCrd(resource), yaml)}`,
    ]),
  )
