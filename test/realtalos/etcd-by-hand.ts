// The etcd of the real machines, as a person with its certificate reaches it past Talos.
import { request } from 'node:https'
import { vi } from 'vitest'
import { applied, kubectl, talos } from './ichor.ts'
import { addresses, controlPlanes } from './cluster.ts'

// A control plane may end its connections when another one has just died.
const secret = (name: string): Promise<string> =>
  vi.waitFor(() => talos('-n', addresses['cp-1'], 'read', `/system/secrets/etcd/${name}`), { timeout: 60_000, interval: 1000 })

async function ask<T>(path: string, body: object): Promise<T> {
  const [ca, cert, key] = await Promise.all([secret('ca.crt'), secret('admin.crt'), secret('admin.key')])
  return new Promise<T>((resolve, reject) => {
    const options = { ca, cert, key, host: addresses['cp-1'], port: 2379, method: 'POST', path, timeout: 20_000 }
    const asked = request(options, answer => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (part: string) => (text += part))
      answer.on('end', () => (answer.statusCode === 200 ? resolve(JSON.parse(text) as T) : reject(new Error(`${path}: ${text}`))))
    })
    asked.on('timeout', () => asked.destroy(new Error(`${path}: no answer`)))
    asked.on('error', reject)
    asked.end(JSON.stringify(body))
  })
}

/** Leaves most of the database free on every member: much is written, deleted, and its history dropped. */
export async function fragment(): Promise<void> {
  const names = Array.from({ length: 24 }, (_, at) => `filler-${at}`)
  const data = { filler: 'x'.repeat(900_000) }
  for (const name of names) {
    const metadata = { name, namespace: 'default' }
    // Not by `apply`, which would keep it a second time, in an annotation that is too long.
    await applied({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, 'create')
  }
  await kubectl('delete', 'configmap', '-n', 'default', ...names)
  const { header } = await ask<{ header: { revision: string } }>('/v3/maintenance/status', {})
  await ask('/v3/kv/compaction', { revision: header.revision, physical: true })
}

export type Member = { readonly id: string; readonly size: number; readonly inUse: number; readonly leader: string }

/** What `talosctl etcd status` says of each of these control planes, by address. It leaves out who does not answer at once, and that is asked again. */
export const members = (of: readonly string[] = controlPlanes): Promise<Readonly<Record<string, Member>>> =>
  vi.waitFor(
    async () => {
      const told = parsed(await talos('-n', of.join(','), 'etcd', 'status'))
      const silent = of.filter(address => told[address] === undefined)
      if (silent.length > 0) throw new Error(`etcd status says nothing of ${silent.join(', ')}`)
      return told
    },
    { timeout: 60_000, interval: 1000 },
  )

function parsed(table: string): Readonly<Record<string, Member>> {
  const [, ...rows] = table.trim().split('\n')
  const bytes = (text: string): number => {
    const [, count = '', unit = ''] = /^([\d.]+) (\w+)/.exec(text) ?? []
    return Number(count) * ({ B: 1, kB: 1e3, MB: 1e6, GB: 1e9 }[unit] ?? Number.NaN)
  }
  return Object.fromEntries(
    rows.map(row => {
      const [address = '', id = '', size = '', inUse = '', leader = ''] = row.split(/ {2,}/)
      return [address, { id, size: bytes(size), inUse: bytes(inUse), leader }]
    }),
  )
}
