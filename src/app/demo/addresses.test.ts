import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { TALOS_PORT, takeAddresses } from './addresses.ts'

it('takes a range for itself, and says which ones were taken', async () => {
  const first = await takeAddresses(3)
  try {
    expect(first.addresses).toHaveLength(3)
    const second = await takeAddresses(3)
    try {
      expect(second.addresses).not.toContain(first.addresses[0])
      expect(second.passedOver.join()).toContain(`${first.addresses[0]} and following are in use`)
    } finally {
      second.release()
    }
  } finally {
    first.release()
  }
})

it('passes over a range in which something else listens', async () => {
  const { addresses, release } = await takeAddresses(2)
  release()
  const other = createServer()
  other.listen({ host: addresses[1], port: TALOS_PORT })
  await once(other, 'listening')
  try {
    const taken = await takeAddresses(2)
    taken.release()
    expect(taken.addresses).not.toContain(addresses[1])
    expect(taken.passedOver.join()).toContain(`${addresses[1]}:${TALOS_PORT} is in use`)
  } finally {
    other.close()
  }
})
