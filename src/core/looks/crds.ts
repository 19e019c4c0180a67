import { sameValue } from '../same-value.ts'
import type { CrdFacts, InstallationSight } from './installation-sight.ts'
import { type Finding, listed, type Look, orFine, plural, unseenFor, warning, wrong } from './look.ts'

const INSTALL = { command: 'ichor install --crds-only' }

/** Whether Ichor's resource types are there, are served, are those of this program, and are stored as it reads them. */
export const crds: Look<InstallationSight> = {
  name: 'CRDs',
  look: ({ crds: found, wantedCrds }) => {
    const all = Object.entries(wantedCrds)
    const missing = all.filter(([name]) => found[name]?.ok && found[name].value === undefined).map(([name]) => name)
    const findings: Finding[] = missing.length > 0 ? [wrong(`Not there: ${listed(missing)}.`, INSTALL)] : []
    const [unread] = all.flatMap(([name]) => (found[name] && !found[name].ok ? [found[name].fault] : []))
    if (unread) findings.push(unseenFor('CRDs', unread))
    for (const [name, wanted] of all) {
      const now = found[name]
      if (now?.ok && now.value) findings.push(...judgedCrd(name, now.value, wanted))
    }
    return orFine(findings, `${plural(all.length, 'type')}, as this program has them.`)
  },
}

const judgedCrd = (name: string, now: CrdFacts, wanted: CrdFacts): readonly Finding[] => {
  if (!now.established)
    return [
      wrong(`${name} is written down, but not served: ${now.message || 'it is not established'}.`, {
        remedy: 'Another type may have its names.',
        command: `kubectl describe crd ${name}`,
      }),
    ]
  const findings: Finding[] = []
  for (const { name: version, schema } of wanted.versions) {
    const there = now.versions.find(one => one.name === version)
    if (!there?.served) findings.push(wrong(`${name} does not serve ${version}.`, INSTALL))
    else {
      const paths = differences(schema, there.schema)
      if (paths.length > 0)
        findings.push(
          warning(
            `${name} is of another version of Ichor: it differs in ${listed(paths.slice(0, 3))}${paths.length > 3 ? ' and more' : ''}.`,
            {
              remedy: 'Bring the older of the two up to date, this program or the installation.',
              ...INSTALL,
            },
          ),
        )
    }
  }
  const storage = now.versions.find(one => one.storage)?.name
  const old = now.stored.filter(version => version !== storage)
  if (old.length > 0)
    findings.push(
      warning(
        `Objects of ${name} may still be stored as ${listed(old)}: that version cannot be taken away before they are rewritten.`,
        INSTALL,
      ),
    )
  return findings
}

/** Where two schemas differ, as paths of fields; descriptions are words. */
export const differences = (wanted: unknown, found: unknown, path = ''): readonly string[] => {
  if (sameValue(wanted, found)) return []
  if (!isRecord(wanted) || !isRecord(found)) return [path || 'its schema']
  return [...new Set([...Object.keys(wanted), ...Object.keys(found)])]
    .filter(key => key !== 'description' || typeof wanted[key] === 'object' || typeof found[key] === 'object')
    .flatMap(key => differences(wanted[key], found[key], STRUCTURE.has(key) ? path : path === '' ? key : `${path}.${key}`))
}

/** Levels of a schema that are no fields. */
const STRUCTURE = new Set(['properties', 'openAPIV3Schema', 'items', 'additionalProperties'])

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
