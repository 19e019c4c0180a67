import { describe, expect, it } from 'vitest'
import { compatibilityTable, type CompatibilityTable, type Finding } from './table.ts'
import { talosStep, verdict } from './verdict.ts'

const brief = (findings: readonly Finding[]) => findings.map(f => `${f.id}: ${f.verdict}`)
const refusals = (findings: readonly Finding[]) => brief(findings.filter(f => f.verdict === 'known-bad' || f.verdict === 'untested'))
const good = { talos: 'v1.13.9', kubernetes: 'v1.35.4', kernel: '6.18.44-talos' }
const plain = { 'kube-proxy-replacement': 'false', 'enable-bpf-masquerade': 'false' }

describe('Talos with Kubernetes', () => {
  it.each([
    ['inside Talos own bounds', 'v1.13.9', 'v1.36.3', 'supported'],
    ['at the lower end', 'v1.13.9', 'v1.31.0', 'supported'],
    ['newer than Talos takes (siderolabs/talos#11198)', 'v1.9.6', 'v1.33.0', 'known-bad'],
    ['older than the new Talos takes (siderolabs/talos#12398)', 'v1.13.9', 'v1.30.14', 'known-bad'],
    ['accepted by the code but not in the support matrix', 'v1.14.0', 'v1.32.4', 'untested'],
    ['a pre-release, which counts as its release', 'v1.14.0-rc.1', 'v1.37.0-rc.0', 'supported'],
    ['with a vendor tail (helm/helm#12053)', 'v1.13.9', 'v1.33.4-acme-5f2c', 'supported'],
    ['a Talos minor newer than the table', 'v1.15.0', 'v1.36.0', 'untested'],
    ['a patch newer than the table', 'v1.13.99', 'v1.36.0', 'supported'],
    ['a Kubernetes that is no version', 'v1.13.9', 'unknown', 'untested'],
  ])('%s', (_, talos, kubernetes, expected) => {
    expect(verdict({ talos, kubernetes, kernel: undefined }).map(f => f.verdict)).toEqual([expected])
  })
  it('says what was found and what would be right', () => {
    const [finding] = verdict({ talos: 'v1.13.9', kubernetes: 'v1.30.14', kernel: undefined })
    expect(finding).toMatchObject({
      id: 'talos-1.13-kubernetes',
      reason: 'Kubernetes v1.30.14 on Talos v1.13.9: Talos 1.13 accepts Kubernetes 1.31 to 1.36.',
    })
    expect(finding?.sources[0]).toContain('siderolabs/talos')
  })
})

describe('Cilium with Kubernetes and the kernel', () => {
  it.each([
    ['listed', '1.19.3', 'v1.35.4', []],
    ['not listed yet', '1.18.14', 'v1.35.4', ['cilium-1.18-kubernetes: untested']],
    ['a Cilium that the table does not know', '1.21.0', 'v1.35.4', ['cilium-kubernetes: untested']],
    ['no version at all', 'latest', 'v1.35.4', ['cilium-kubernetes: untested']],
  ])('%s', (_, version, kubernetes, expected) => {
    expect(refusals(verdict({ ...good, kubernetes, cilium: { version, config: plain } }))).toEqual(expected)
  })
  it('refuses a kernel below the minimum', () => {
    expect(refusals(verdict({ ...good, kernel: '5.4.200', cilium: { version: '1.19.8', config: plain } }))).toEqual([
      'cilium-1.19-kernel: known-bad',
    ])
  })
  it('asks nothing about Cilium where it does not run', () => expect(verdict(good)).toHaveLength(1))
})

describe('known faults', () => {
  const at = (talos: string, version: string, config: Record<string, string> | undefined, kernel?: string) =>
    brief(verdict({ talos, kubernetes: 'v1.33.4', kernel, cilium: { version, config } }).filter(f => /^K\d/.test(f.id)))
  const kpr = { ...plain, 'kube-proxy-replacement': 'true' }

  it.each([
    ['K1 with kube-proxy replacement (cilium/cilium#44216)', 'v1.12.4', kpr, ['K1: known-bad']],
    ['K1 with the host firewall alone', 'v1.12.2', { ...plain, 'enable-host-firewall': 'true' }, ['K1: known-bad']],
    ['K1 not before the faulty kernel', 'v1.12.1', kpr, []],
    ['K1 not after the fix', 'v1.12.5', kpr, []],
    ['K1 not where none of the three is on', 'v1.12.4', plain, []],
    ['K1 not where absent keys mean off', 'v1.12.4', {}, []],
    ['K6 on the beta kernels (siderolabs/talos#13935)', 'v1.14.0-beta.1', { 'enable-ipv6': 'true' }, ['K6: known-bad']],
    ['K6 not from rc.1 on', 'v1.14.0-rc.1', { 'enable-ipv6': 'true' }, []],
    ['K6 not without IPv6', 'v1.14.0-beta.1', {}, []],
    ['K6 counts for a build after alpha.1', 'v1.14.0-alpha.2', { 'enable-ipv6': 'true' }, ['K6: known-bad']],
  ])('%s', (_, talos, config, expected) => {
    expect(at(talos, '1.18.6', config)).toEqual(expected)
  })

  it('counts a row as matching where cilium-config cannot be read, and says so', () => {
    const finding = verdict({
      talos: 'v1.12.4',
      kubernetes: 'v1.33.4',
      kernel: undefined,
      cilium: { version: '1.18.6', config: undefined },
    }).find(f => f.id === 'K1')
    expect(finding).toMatchObject({ verdict: 'known-bad', fixedIn: 'Talos v1.12.5', pair: 'Cilium × Talos' })
    expect(finding?.reason).toContain('could not be read')
  })
  it('only warns where what it hangs on cannot be seen (cilium/cilium#45572)', () => {
    expect(at('v1.13.9', '1.19.2', kpr)).toEqual(['K2: warning'])
    expect(at('v1.13.9', '1.19.2', { ...kpr, 'default-lb-service-ipam': 'none' })).toEqual([])
  })
  it('reads the old name of the egress gateway key as well', () => {
    expect(at('v1.13.9', '1.19.1', { ...kpr, 'enable-ipv4-egress-gateway': 'true', 'default-lb-service-ipam': 'none' })).toEqual([
      'K3: warning',
    ])
  })
  it('warns of cluster DNS with BPF masquerading and without legacy host routing (cilium/cilium#36852)', () => {
    const config = { ...kpr, 'enable-bpf-masquerade': 'true' }
    expect(at('v1.13.9', '1.18.14', config)).toEqual(['K11: warning'])
    expect(at('v1.13.9', '1.18.14', { ...config, 'enable-host-legacy-routing': 'true' })).toEqual([])
  })
  it('judges by the kernel that runs (cilium/cilium#48016)', () => {
    expect(at('v1.13.9', '1.20.1', plain, '7.2.1')).toEqual(['K7: known-bad'])
    expect(at('v1.13.9', '1.20.1', plain, '7.1.9')).toEqual([])
    expect(at('v1.13.9', '1.20.1', plain, '6.18.44-talos')).toEqual([])
    expect(at('v1.13.99', '1.20.1', plain)).toEqual([])
    expect(at('v1.99.0', '1.20.1', plain)).toEqual(['K7: known-bad'])
  })
  it('takes BTF for granted in Talos own kernel only (cilium/cilium#48778)', () => {
    expect(at('v1.13.9', '1.20.2', plain, '6.18.44-talos')).toEqual([])
    expect(at('v1.13.99', '1.20.2', plain)).toEqual([])
    expect(at('v1.13.9', '1.20.2', plain, '6.18.44-mine')).toEqual(['K8: known-bad'])
  })
  it('asks what a running Cilium has proved only when Cilium changes (siderolabs/talos#9132)', () => {
    const changed = verdict({ ...good, ciliumChanges: true, cilium: { version: '1.18.14', config: kpr } })
    expect(refusals(changed)).toEqual(['cilium-1.18-kubernetes: untested', 'K13: known-bad', 'K14: known-bad', 'K15: known-bad'])
  })
  it('lets known-bad beat supported within a pair', () => {
    const findings = verdict({ ...good, kernel: '7.2.1', cilium: { version: '1.20.1', config: plain } })
    expect(brief(findings)).toContain('K7: known-bad')
    expect(brief(findings)).not.toContain('cilium-1.20-kernel: supported')
  })
  it('takes a new row without code', () => {
    const row = {
      id: 'K99',
      match: { talos: '1.13.9', kubernetes: '>=1.35.0', cilium: '*' },
      verdict: 'known-bad' as const,
      reason: 'Invented for this test.',
      sources: ['test'],
    }
    const table: CompatibilityTable = { ...compatibilityTable, faults: [row] }
    expect(refusals(verdict({ ...good, cilium: { version: '1.19.3', config: {} } }, table))).toEqual(['K99: known-bad'])
    expect(refusals(verdict({ ...good, kubernetes: 'v1.34.0', cilium: { version: '1.19.3', config: {} } }, table))).toEqual([])
  })
})

describe('a Talos step', () => {
  it.each([
    ['a patch', 'v1.13.5', 'v1.13.9', 'supported', ''],
    ['a minor', 'v1.12.11', 'v1.13.9', 'supported', ''],
    [
      'a skipped minor',
      'v1.11.6',
      'v1.13.9',
      'untested',
      'From Talos v1.11.6 to v1.13.9 a minor is skipped; only adjacent minors are tested. Go by v1.12.11, then v1.13.9.',
    ],
    [
      'a host that Talos refuses',
      'v1.10.4',
      'v1.13.9',
      'known-bad',
      'Talos v1.10.4 is too old to be upgraded to v1.13.9, which takes v1.11.0 and newer. Go by v1.10.9, then v1.11.6, then v1.12.11, then v1.13.9.',
    ],
    ['a downgrade within bounds', 'v1.13.9', 'v1.12.5', 'supported', ''],
    [
      'a downgrade out of bounds',
      'v1.14.0',
      'v1.12.5',
      'known-bad',
      'Talos v1.14.0 is too new to be brought to v1.12.5, which takes versions below v1.14.0.',
    ],
    [
      'a minor that the table does not know',
      'v1.14.0',
      'v1.15.0',
      'untested',
      'From Talos v1.14.0 to v1.15.0: the table does not know Talos v1.15.0.',
    ],
  ])('%s', (_, from, to, expected, reason) => {
    const [finding] = talosStep(from, to)
    expect(finding?.verdict).toBe(expected)
    if (reason !== '') expect(finding?.reason).toBe(reason)
  })
})
