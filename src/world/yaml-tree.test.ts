import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { at, readYaml, textAt, textsAt } from './yaml-tree.ts'

/** All scalars as texts, as the world reads them. */
const asTexts = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asTexts)
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, asTexts(one)]))
  return value === null ? '' : String(value as string | number | boolean)
}

const CONFIG = `version: v1alpha1 # the only one
debug: false
persist: true
machine:
    type: controlplane
    certSANs: []
    # nothing is said of this
    nodeLabels:
        example.com/zone: "a: b" # a comment
        'quoted''s': plain
        node.kubernetes.io/exclude-from-external-load-balancers: ""
    nodeTaints: {example.com/gpu: "yes:NoSchedule", other: NoExecute}
    files:
      - content: |
          first
            second
        path: /var/x
        permissions: 0o644
      -
        path: /var/y
    sysctls:
        net.core.somaxconn: "65535"
cluster:
    extraManifests:
    - https://example.com/a.yaml
    - "https://example.com/b.yaml"
    empty: []
    nothing:
    inlineManifests:
        - name: one
          contents: |-
            apiVersion: v1
            kind: Namespace
    apiServer:
        extraArgs:
            audit-log-maxage: "7"
            feature-gates: A=true,B=false
        admissionControl: [{name: PodSecurity, configuration: {kind: X, list: [1, 2]}}]
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp-1
`

describe('the YAML that the world reads', () => {
  it('says what a whole reader says, texts for scalars', () => {
    const whole = parseAllDocuments(CONFIG).map(document => asTexts(document.toJS({ mapAsMap: false })))
    const read = readYaml(CONFIG).map(asTexts)
    // Octal numbers are the only scalar whose text is not its value.
    expect(read).toEqual(JSON.parse(JSON.stringify(whole).replace('"420"', '"0o644"')))
  })

  it('finds texts and mappings by their path, and nothing where nothing is said', () => {
    const [document] = readYaml(CONFIG)
    expect(textAt(document, 'machine', 'type')).toBe('controlplane')
    expect(textAt(document, 'cluster', 'nothing')).toBeUndefined()
    expect(textAt(document, 'machine', 'nodeLabels')).toBeUndefined()
    expect(textsAt(document, 'machine', 'nodeTaints')).toEqual({ 'example.com/gpu': 'yes:NoSchedule', other: 'NoExecute' })
    expect(textsAt(document, 'machine', 'nowhere')).toEqual({})
    expect(at(document, 'cluster', 'extraManifests')).toEqual(['https://example.com/a.yaml', 'https://example.com/b.yaml'])
  })

  it.each(['', '\n', '---\n', '# only a comment\n'])('reads no document in %j', text => expect(readYaml(text)).toEqual([]))
})
