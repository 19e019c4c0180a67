import { describe, expect, it } from 'vitest'
import { tagVersion } from '../../src/adapters/kube/facts.ts'
import { verdict } from '../../src/core/compatibility/verdict.ts'
import { compareVersions, parseVersion } from '../../src/core/versions.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { play, installedFrom, playWithDeaths } from './play.ts'

const v = (text: string) => {
  const parsed = parseVersion(text)
  if (!parsed) throw new Error(`${text} is a version`)
  return parsed
}

describe('a vendor puts a tail behind the version [B003 helm/helm#12053, aws/eks-distro#512, replicatedhq/troubleshoot#1441]', () => {
  it('of kubelet and API server, at the oldest Kubernetes that the new Talos takes: shown, and not held against it', async () => {
    const { run, end } = await playWithDeaths({
      cluster: {
        talos: 'v1.12.2',
        kubernetes: 'v1.30.4',
        vendorTail: of => (of === 'api server' ? '-acme-5f2c' : of === 4 ? '+acme.2' : ''),
      },
      spec: { talos: { version: 'v1.12.4' } },
    })
    expect(end.phase).toBe('Completed')
    const { refusals, kubernetes } = run.status().preflight ?? {}
    expect(refusals).toEqual([])
    expect(Object.values(kubernetes ?? {})).toContain('v1.30.4+acme.2')
  })

  it('of Talos itself: a machine of v1.13.0-acme.1 has what v1.13.0 has, one of v1.13.0-rc.1 is older', async () => {
    const way = async (talos: string): Promise<readonly string[]> => {
      const { run, end } = await play({ cluster: { talos }, spec: { talos: { version: 'v1.13.5' } } })
      expect(end.phase).toBe('Completed')
      return [
        ...new Set(run.world.machines.map(m => (run.world.journal.of('upgrade-requested', m.name).length > 0 ? 'legacy' : 'lifecycle'))),
      ]
    }
    expect(await way('v1.13.0-acme.1')).toEqual(['lifecycle'])
    expect(await way('v1.13.0-rc.1')).toEqual(['legacy'])
  })

  it('the same release without the tail is neither newer nor older; with a true pre-release it is', () => {
    for (const tail of ['-acme-5f2c', '+acme.2', '-eks-1-33-4']) expect(compareVersions(v(`v1.33.4${tail}`), v('v1.33.4'))).toBe(0)
    for (const tail of ['-alpha.1', '-beta.0', '-rc.2']) expect(compareVersions(v(`v1.33.4${tail}`), v('v1.33.4'))).toBeLessThan(0)
    const at = (kubernetes: string) => verdict({ talos: 'v1.13.9', kubernetes, kernel: undefined }).map(f => f.verdict)
    expect(['v1.31.0-acme-5f2c', 'v1.31.0+acme.2', 'v1.36.9-acme-5f2c'].map(at)).toEqual(Array(3).fill(['supported']))
  })
})

describe('an image with both a tag and a digest [B005 siderolabs/talos#10373, siderolabs/talos#12875]', () => {
  const S1 = 'a'.repeat(64)
  const digest = `sha256:${'0123456789abcdef'.repeat(4)}`
  const mirror = 'registry.example:5000'
  const cluster = {
    talos: 'v1.12.2',
    kubernetes: 'v1.34.1',
    schematic: S1,
    extensions: ['iscsi-tools'],
    factory: mirror,
    installImage: () => `${mirror}/metal-installer/${S1}:v1.12.2@${digest}`,
  }

  it('that machines were installed from and whose programs they run: registry and port stay, no new tag meets the old digest', async () => {
    const pinned = (name: string) => `${mirror}/mirror/${name}:v1.34.1@${digest}`
    const { run, end } = await playWithDeaths({
      cluster,
      spec: { talos: { version: 'v1.12.4' } },
      arrange: ({ world }) => {
        for (const machine of world.machines)
          machine.config = machine.config.replaceAll(/(?:ghcr\.io\/siderolabs|registry\.k8s\.io)\/([a-z-]+):v1\.34\.1$/gm, (_, name) =>
            pinned(String(name)),
          )
      },
    })
    expect(end.phase).toBe('Completed')
    const image = `${mirror}/metal-installer/${S1}:v1.12.4`
    expect(installedFrom(run)).toEqual(Array(5).fill(image))
    expect(run.status().preflight?.kubernetes).toEqual({ lowest: 'v1.34.1', highest: 'v1.34.1' })
    for (const { config, name } of run.world.machines) {
      expect(config, name).toContain(`image: ${image}\n`)
      expect(config, name).toContain(`image: ${pinned('kubelet')}\n`)
    }
    expect(run.world.journal.entries().filter(e => e.detail.includes(digest))).toEqual([])
  })

  it('that is asked for is refused with the two ways to write it, before anything is pulled', async () => {
    const image = `${mirror}/metal-installer/${S1}:v1.12.4@${digest}`
    const { run, end } = await play({ cluster, spec: { talos: { version: 'v1.12.4', image } } })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(run.status().message).toContain('has both a tag and a digest; name one of them:')
    expect(run.status().message).toContain(`${mirror}/metal-installer/${S1}:v1.12.4 or ${mirror}/metal-installer/${S1}@${digest}.`)
  })

  it.each([
    [`${mirror}/mirror/cilium:v1.18.2@${digest}`, '1.18.2'],
    [`${mirror}/mirror/cilium:v1.18.2`, '1.18.2'],
    [`${mirror}/mirror/cilium@${digest}`, ''],
    [`quay.io/cilium/cilium@${digest}`, ''],
  ])('%s runs the version %j: no digest and no port is one', (image, version) => {
    expect(tagVersion(image)).toBe(version)
  })
})

describe('a Kubernetes that is too new for Talos [B007 siderolabs/talos#11198]', () => {
  const trapped = { talos: 'v1.9.5', kubernetes: 'v1.33.1' }

  it('is refused with the nearest release that takes it, and that one is taken', async () => {
    const { run, end } = await playWithDeaths({ cluster: trapped, spec: { talos: { version: 'v1.9.6' } } }, 3)
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    const offered = /The nearest Talos that takes Kubernetes 1\.33 is (v[\d.]+\d)\./.exec(run.status().message ?? '')?.[1] ?? ''
    expect(offered).toBe('v1.10.9')
    expect(run.world.journal.of('upgrade-requested')).toEqual([])
    const out = await play({ cluster: trapped, spec: { talos: { version: offered } } })
    expect(out.end.phase).toBe('Completed')
  })

  it('on one Node alone decides for all, and the Node is named', async () => {
    const { run, end } = await play({
      cluster: { ...trapped, kubernetes: 'v1.32.3' },
      spec: { talos: { version: 'v1.9.6' } },
      arrange: ({ world }) => {
        const node = world.store.get(RESOURCE.nodes, '', 'wk-2')
        const status = node?.status as { nodeInfo: object }
        if (node)
          world.store.update(RESOURCE.nodes, {
            ...node,
            status: { ...status, nodeInfo: { ...status.nodeInfo, kubeletVersion: 'v1.33.1' } },
          })
      },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(run.status().preflight?.refusals.map(r => r.rule)).toEqual(['KubernetesSkew'])
    expect(run.status().message).toMatch(
      /Kubernetes v1\.33\.1 on Talos v1\.9\.6: Talos 1\.9 accepts .* to 1\.32\. It runs on wk-2\. The nearest/,
    )
  })

  it('only a person who says so goes past it, which is recorded', async () => {
    const { run } = await play({
      cluster: { ...trapped, kubernetes: 'v1.33.1' },
      spec: { talos: { version: 'v1.9.6' }, override: true },
      allowed: { keepsCordon: [] },
    })
    expect(run.status().preflight?.refusals.map(r => [r.rule, r.overridden])).toEqual([['KubernetesSkew', true]])
    expect(run.events('up').filter(e => e.startsWith('Overridden'))).toHaveLength(1)
  })
})
