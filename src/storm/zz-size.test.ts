import { it } from 'vitest'
import { createStory } from './story.ts'
it('x', async () => {
  const began = performance.now()
  let most = 0
  let largest: any
  let writes = 0
  const story = createStory({
    controlPlanes: 5,
    workers: 195,
    talos: 'v1.13.5',
    wrap: ports => ({
      ...ports,
      home: {
        ...ports.home,
        writeOperationStatus: async (o, s) => {
          const r = await ports.home.writeOperationStatus(o, s)
          writes++
          if (r.ok && writes % 20 === 0) {
            const n = JSON.stringify(r.value).length
            if (n > most) {
              most = n
              largest = r.value
            }
          }
          return r
        },
      },
    }),
  })
  story.start(); await story.pass(60_000); console.log('found', performance.now()-began)
  story.create({ name: 'up', spec: { kind: 'talos', talos: { version: 'v1.13.9' }, maxUnavailable: '25%' } as any })
  await story.until('done', () => story.operation('up')?.status.phase === 'Completed', 20 * 3600_000)
  console.log(most, writes, performance.now() - began)
  console.log(JSON.stringify(largest.status.machines[100]), JSON.stringify(largest.status.machines[6]))
  console.log(JSON.stringify(largest.status.machines.find((m: any) => m.phase === 'Running')))
}, 500_000)
