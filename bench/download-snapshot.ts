// A child of snapshot-download.ts: one download of an etcd snapshot with our client, to a file. Arguments: talosconfig, address, file. Prints what it
// took as JSON.
import { open, readFile } from 'node:fs/promises'
import { talosConnection } from '../src/adapters/talos/connection.ts'
import { systemClock } from '../src/app/system-clock.ts'
import { done } from '../src/ports/fault.ts'

const [talosconfigPath = '', address = '', path = ''] = process.argv.slice(2)
const opened = talosConnection({ talosconfig: await readFile(talosconfigPath, 'utf8'), clock: systemClock })
if (!opened.ok) throw new Error(opened.fault.message)
const file = await open(path, 'w')
const taken = await opened.value.snapshot(
  address,
  async bytes => {
    await file.write(bytes)
    return done
  },
  { cancellation: { cancelled: false, onCancel: () => () => {} }, progress: () => {} },
)
await file.close()
opened.value.destroy()
if (!taken.ok) throw new Error(taken.fault.message)
process.stdout.write(JSON.stringify({ ...taken.value, peakRssKb: process.resourceUsage().maxRSS }))
