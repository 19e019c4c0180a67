import { fromBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { StatusSpecSchema } from '../../../proto/gen/talos/resource/definitions/time/time_pb.ts'
import { createWorld } from '../../world/cluster.ts'
import { runtimeKinds } from './runtime-kinds.ts'

test('a machine that waits for the time says so in its TimeStatus, too', () => {
  const world = createWorld({ seed: 7, controlPlanes: 1, workers: 1 })
  const [kind, machine] = [runtimeKinds.find(({ display }) => display === 'TimeStatus')!, world.machine('wk-1')]
  const told = () => kind.draw(world.site, machine, { authorities: undefined, staticPods: { of: () => undefined, close: () => {} } })[0]!
  const isSynced = (): boolean => fromBinary(StatusSpecSchema, told().proto).synced
  expect([isSynced(), told().yaml]).toEqual([true, expect.stringContaining('synced: true')])
  machine.waitsForTime = true
  expect([isSynced(), told().yaml]).toEqual([false, expect.stringContaining('synced: false')])
})
