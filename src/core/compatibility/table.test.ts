import semver from 'semver'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseVersion, semverOf } from '../versions.ts'
import { compatibilityTable as table, latestPatch, talosKernel, talosRelease } from './table.ts'
import data from './table.json' with { type: 'json' }

const minor = z.string().regex(/^\d+\.\d+$/)
const final = z.string().regex(/^\d+\.\d+\.\d+$/)
const version = z.string().regex(/^\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$/)
const range = z.string().refine(text => semver.validRange(text) !== null, 'no semver range')
const sentence = z.string().min(10)
const minors = z.strictObject({ from: minor, to: minor })
const sources = z.array(z.string().min(5)).min(1)
const helmValues = new Set(data.ciliumValues.map(v => v.helm))
const value = z.string().refine(v => helmValues.has(v), 'not in ciliumValues')
const condition = z.union([
  z.strictObject({ value, is: z.string() }),
  z.strictObject({ value, isNot: z.string() }),
  z.strictObject({ unseen: z.string().startsWith('whether ') }),
])
const option = z.string().regex(/^[a-z][a-z-]+$/)
const refused = z.enum(['known-bad', 'warning'])

const shape = z.strictObject({
  schema: z.literal(1),
  asOf: z.iso.date(),
  talosMinors: z.array(
    z.strictObject({
      minor,
      kubernetes: minors,
      kubernetesListed: minors,
      hosts: z.strictObject({ from: final, below: final }),
      kernelLine: minor,
      etcdLine: minor,
      sources,
    }),
  ),
  talosReleases: z.array(
    z.strictObject({
      version,
      date: z.iso.date(),
      kernel: final,
      etcd: final,
      kubernetes: version,
      coredns: final,
      containerd: final,
      flannel: final,
    }),
  ),
  talosReleasesSources: sources,
  ciliumMinors: z.array(
    z.strictObject({
      minor,
      kubernetes: minors,
      kernel: final,
      grade: z.enum(['first hand', 'second hand']),
      note: sentence.optional(),
      sources,
    }),
  ),
  ciliumValues: z.array(
    z.strictObject({
      helm: z.string(),
      config: z.array(z.string().regex(/^[a-z0-9-]+$/)).min(1),
      default: z.string(),
      alsoTrue: z.array(z.string()).optional(),
      note: sentence.optional(),
    }),
  ),
  faults: z.array(
    z.strictObject({
      id: z.string().regex(/^K\d+[a-z]?$/),
      match: z.strictObject({
        talos: range.optional(),
        kubernetes: range.optional(),
        cilium: range,
        kernel: range.optional(),
        kernelText: z
          .string()
          .refine(text => new RegExp(text) instanceof RegExp)
          .optional(),
      }),
      verdict: refused,
      concerns: z.literal('cilium-change').optional(),
      when: z.strictObject({ all: z.array(condition).min(1).optional(), any: z.array(condition).min(1).optional() }).optional(),
      reason: sentence,
      fixedIn: z.string().optional(),
      advice: sentence.optional(),
      sources,
    }),
  ),
  etcdSteps: z.array(
    z.strictObject({
      id: z.string().startsWith('etcd-'),
      from: range,
      to: range,
      verdict: refused,
      reason: sentence,
      advice: sentence.optional(),
      unseen: z.string().startsWith('whether ').optional(),
      sources,
    }),
  ),
  removedOptions: z.array(
    z.strictObject({
      kubernetes: minor,
      featureGates: z.array(z.string().regex(/^[A-Z]\w+$/)),
      flags: z.partialRecord(z.enum(['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet']), z.array(option).min(1)),
      admissionPlugins: z.array(z.string().regex(/^[A-Z]\w+$/)),
      sources,
    }),
  ),
})

describe('the compatibility table', () => {
  it('has the shape that the code reads', () => {
    const read = shape.safeParse(data)
    expect(read.success ? [] : read.error.issues).toEqual([])
  })
  it('names every row once', () => {
    const ids = [
      ...table.talosMinors.map(m => `talos ${m.minor}`),
      ...table.ciliumMinors.map(m => `cilium ${m.minor}`),
      ...table.talosReleases.map(r => r.version),
    ]
    const all = [...ids, ...table.faults.map(f => f.id), ...table.etcdSteps.map(s => s.id), ...table.ciliumValues.map(v => v.helm)]
    expect(new Set(all).size).toBe(all.length)
  })
  it('has a kernel and an etcd of its minor for every release, and a minor for every release', () => {
    for (const release of table.talosReleases) {
      const [major, number] = release.version.split('.')
      const row = table.talosMinors.find(m => m.minor === `${major}.${number}`)
      expect(row, release.version).toBeDefined()
      expect(release.kernel.startsWith(`${row?.kernelLine}.`), release.version).toBe(true)
      expect(release.etcd.startsWith(`${row?.etcdLine}.`), release.version).toBe(true)
    }
  })
  it('lists releases oldest first within a minor', () => {
    for (const [i, release] of table.talosReleases.entries()) {
      const next = table.talosReleases[i + 1]
      if (next === undefined) continue
      const [a, b] = [parseVersion(release.version), parseVersion(next.version)]
      expect(a && b && semver.lt(semverOf(a), semverOf(b)), `${release.version} before ${next.version}`).toBe(true)
    }
  })
  it('knows what a release brings', () => {
    expect(talosRelease('v1.13.9')).toMatchObject({ kernel: '6.18.44', etcd: '3.6.12', kubernetes: '1.36.3' })
    expect(talosRelease('v1.14.0-rc.1')?.etcd).toBe('3.7.1')
    expect(talosRelease('v1.14.0-rc.1-3-gad8823176')).toBeUndefined()
    expect(talosKernel('v1.12.5')).toBe('6.18.15-talos')
    expect(talosKernel('v1.13.99')).toBeUndefined()
    expect(latestPatch('1.12')).toBe('v1.12.11')
    expect(latestPatch('1.14')).toBeUndefined()
  })
})
