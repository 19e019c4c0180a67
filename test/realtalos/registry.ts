// The registry of the real machines.
import { expect } from 'vitest'

const registry = 'http://10.5.0.1:5000/v2'

/** Takes an image like `kube-scheduler:v1.35.4` out of it. The answer brings it back. */
export async function takenFrom(image: string): Promise<() => Promise<void>> {
  const [repository, tag] = image.split(':')
  const place = `${registry}/${repository}/manifests/${tag}`
  const kept = await fetch(place)
  expect(kept.status).toBe(200)
  const [body, type] = [await kept.arrayBuffer(), kept.headers.get('content-type') ?? '']
  expect((await fetch(place, { method: 'DELETE' })).ok).toBe(true)
  expect((await fetch(place)).status).toBe(404)
  return async () => {
    expect((await fetch(place, { method: 'PUT', body, headers: { 'content-type': type } })).ok).toBe(true)
  }
}
