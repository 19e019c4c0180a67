// `npm run bench`: measures what users and operators wait for, prints it, and writes docs/benchmarks.md. `--quick` is a part of it, and only prints.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { firstPicture } from './first-picture.ts'
import { asMarkdown, asText, loadNow, rowsOf, type Measured } from './report.ts'
import { rolloutInVirtualTime } from './rollout-in-virtual-time.ts'
import { rolloutOnTheWire } from './rollout-on-the-wire.ts'
import { buildShipped } from './shipped.ts'
import { startOfList } from './start-of-list.ts'

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const isQuick = values.quick
const startedAt = new Date()
const loadBefore = loadNow()

const step = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
  const began = performance.now()
  process.stderr.write(`${what} … `)
  const result = await run()
  process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0)} s\n`)
  return result
}

const shipped = await step('building what is shipped', async () => buildShipped())
process.once('exit', shipped.remove)
const list = await step('start of a listing', () => startOfList(shipped, isQuick ? 15 : 31))
const virtual = [
  await step('rollout of 3+3 in virtual time', () => rolloutInVirtualTime(3, 3, 1)),
  await step('rollout of 5+20 in virtual time', () => rolloutInVirtualTime(5, 20, 1)),
]
const wire = isQuick
  ? [await step('rollout of 3+3 on the wire', () => rolloutOnTheWire(shipped, 3, 3, 50))]
  : [
      await step('rollout of 3+3 on the wire, about 4 minutes', () => rolloutOnTheWire(shipped, 3, 3, 6)),
      await step('rollout of 5+20 on the wire, about 2 minutes', () => rolloutOnTheWire(shipped, 5, 20, 50)),
    ]
const picture = isQuick ? {} : await step('first picture of the demo', () => firstPicture({ runs: 5 }))

const measured: Measured = {
  command: isQuick ? 'npm run bench -- --quick' : 'npm run bench',
  startedAt,
  loadBefore,
  virtual,
  wire,
  list,
  picture,
}
const rows = rowsOf(measured)
process.stdout.write(`\n${asText(rows)}\n`)
if (!isQuick) writeFileSync(join(import.meta.dirname, '..', 'docs', 'benchmarks.md'), asMarkdown(measured))
process.exit(rows.some(({ isMet }) => isMet === false) ? 1 : 0)
