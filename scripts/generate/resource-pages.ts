import { API_VERSION, GROUP } from '../../src/api/names.ts'
import { PHASES, TARGET_PHASES } from '../../src/api/phases.ts'
import type { CelRule, ResourceDefinition } from '../../src/api/schema.ts'
import { toStructural } from '../../src/api/structural.ts'
import { fieldTable } from './fields.ts'
import type { Files } from './files.ts'
import { code, generatedFrom, list, page, table } from './markdown.ts'

export const resourceFolder = 'docs/reference/resources'

/** One page for each resource: every field of spec and status, the rules, the columns. */
export const resourcePages = (resources: readonly ResourceDefinition[]): Files =>
  new Map(resources.map(resource => [`${resourceFolder}/${resource.singular}.md`, resourcePage(resource)]))

const resourcePage = (resource: ResourceDefinition): string => {
  const spec = toStructural(resource.spec, `${resource.kind}.spec`)
  const status = toStructural(resource.status, `${resource.kind}.status`)
  return page(
    generatedFrom('src/api'),
    `# ${resource.kind}`,
    resource.description,
    list([
      `apiVersion: ${code(API_VERSION)}`,
      `For kubectl: ${[`${resource.plural}.${GROUP}`, resource.plural, resource.singular, ...resource.shortNames].map(code).join(', ')}; ${code('kubectl get ichor')} shows all resources of Ichor`,
      `Namespaced, with ${code('status')} as a subresource`,
    ]),
    '## spec',
    spec.description,
    fieldTable(spec),
    ...(resource.specRules.length === 0 ? [] : ['### Rules', 'Enforced by the API server.', list(ruleTexts(resource.specRules))]),
    '## status',
    status.description,
    fieldTable(status),
    ...(resource.kind === 'TalosOperation' ? phases() : []),
    '## Columns',
    table(
      ['Column', 'Shown', 'Source', 'Meaning'],
      resource.columns.map(column => [
        column.name,
        (column.priority ?? 0) > 0 ? `with ${code('-o wide')}` : 'always',
        code(column.jsonPath),
        column.description,
      ]),
    ),
  )
}

const phases = (): string[] => [
  '## Phases',
  table(['Phase', 'Meaning'], Object.entries(PHASES)),
  'Of one machine:',
  table(['Phase', 'Meaning'], Object.entries(TARGET_PHASES)),
]

/** The sentences of the rules. Those that say the same of several fields become one. */
const ruleTexts = (rules: readonly CelRule[]): string[] => {
  const fieldsBySentence = new Map<string, string[]>()
  for (const { rule, message, messageExpression } of rules) {
    const said = message ?? sentenceOf(messageExpression) ?? code(rule)
    const [, field, sentence] = /^(spec\.\w+) (.*)$/s.exec(said) ?? []
    const key = sentence ?? said
    fieldsBySentence.set(key, [...(fieldsBySentence.get(key) ?? []), ...(field ? [code(field)] : [])])
  }
  return [...fieldsBySentence].map(([sentence, fields]) => (fields.length === 0 ? sentence : `${fields.join(', ')} ${sentence}`))
}

/** What a message expression says before it says what it found. */
const sentenceOf = (expression: string | undefined): string | undefined => {
  const said = /^'([^']*)'/
    .exec(expression ?? '')?.[1]
    ?.split(';')[0]
    ?.trim()
  return said === undefined ? undefined : `${said}.`
}
