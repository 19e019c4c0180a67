// Which public reports are proved by a test. A test claims a case by a tag in its title: [B040 siderolabs/talos#9882].
import type { Files } from './files.ts'
import { cell, generatedFrom, page, reportLink, reportName, table } from './markdown.ts'

export const fieldCasesPath = 'docs/field-cases.md'

export type FieldCase = { readonly id: string; readonly title: string; readonly urls: readonly string[] }
export type Claim = { readonly id: string; readonly report: string | undefined; readonly test: string; readonly path: string }

/** The claims of a test file: each tag in a quoted title, but not in one that is skipped or yet to be written. */
export const claimsIn = (path: string, text: string): Claim[] =>
  [...text.matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n])*\[B\d{3}(?:\\.|(?!\1)[^\\\n])*)\1/g)]
    .filter(({ index }) => !/\.(skip|todo|fails)\(\s*$/.test(text.slice(0, index)))
    .flatMap(([, , title = '']) =>
      [...title.matchAll(/\[(B\d{3})(?:\s+([^\]]+))?\]/g)].map(([, id = '', report]) => ({
        id,
        report,
        path,
        test: title
          .replaceAll(/\s*\[B\d{3}[^\]]*\]\s*/g, ' ')
          .replaceAll(/\\(.)/g, '$1')
          .trim(),
      })),
    )

/** What is wrong with the claims: a case that does not exist, or a report that is none of its case's. */
export const wrongClaims = (cases: readonly FieldCase[], claims: readonly Claim[]): string[] =>
  claims.flatMap(({ id, report, test, path }) => {
    const known = cases.find(one => one.id === id)
    if (!known) return [`${path}: "${test}" names ${id}, which is no field case`]
    const reports = known.urls.map(reportName)
    const wrong = (report ?? '').split(/[\s,]+/).filter(one => one !== '' && !reports.includes(one))
    return wrong.map(one => `${path}: "${test}" names ${one}, which is no report of ${id} (${reports.join(', ')})`)
  })

export const fieldCasesPage = (cases: readonly FieldCase[], claims: readonly Claim[]): Files => {
  const of = (id: string) => claims.filter(claim => claim.id === id)
  const proved = cases.filter(({ id }) => of(id).length > 0).length
  return new Map([
    [
      fieldCasesPath,
      page(
        generatedFrom('docs/field-cases.json and the tests'),
        '# Field cases',
        'Faults that people who run such clusters reported in public. Each becomes a test that carries the number of its report.',
        `${proved} of ${cases.length} have a test.`,
        table(
          ['Case', 'Fault', 'Reports', 'Tests'],
          cases.map(({ id, title, urls }) => [
            id,
            title,
            urls.map(reportLink).join(', '),
            of(id).length === 0
              ? 'not yet'
              : of(id)
                  .map(({ test, path }) => `[${cell(test) || path}](../${path})`)
                  .join('<br>'),
          ]),
        ),
      ),
    ],
  ])
}
