// Every method of every service, asked by an administrator of machines of the newest minor: either it is among the few that are not simulated, and says
// so, or it does something.
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, DescService } from '@bufbuild/protobuf'
import { type Client, type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { grpcPath } from '../../proto/grpc.ts'
import { callStream, callUnary, type Machines, startMachines } from '../../test/machines-on-the-wire.ts'
import { NOT_SIMULATED } from './not-simulated.ts'
import { SERVICES } from './services.ts'

let machines: Machines
beforeAll(async () => {
  machines = await startMachines({ seed: 1, controlPlanes: 3, workers: 0, talos: 'v1.14.0-rc.1', speed: 0 })
})
afterAll(() => machines.close())

/** Interfaces that are not there are refused before anything else. */
const REQUESTS: Readonly<Record<string, Record<string, unknown>>> = { '/machine.MachineService/PacketCapture': { interface: 'eth0' } }

async function answerOf(client: Client, method: DescMethod): Promise<string> {
  const path = grpcPath(method)
  const request = REQUESTS[path] ?? {}
  const told = (error: ServiceError | undefined): string => (error ? `${status[error.code]} ${error.details}` : 'OK')
  // The world stands still: what waits for something has begun to do it, which is enough.
  const settings = { deadlineMs: path in NOT_SIMULATED ? 10_000 : 1000 }
  if (method.methodKind === 'unary')
    return callUnary(client, method as DescMethodUnary, request, settings).then(
      () => 'OK',
      (error: ServiceError) => told(error),
    )
  // One that also takes a stream is sent one message, which is enough to be refused.
  return told(await callStream(client, method as unknown as DescMethodServerStreaming, request, settings).ended)
}

const METHODS = SERVICES.flatMap((service: DescService) => service.methods)

test('what is listed as not simulated is there', () => {
  const paths = METHODS.map(method => grpcPath(method))
  expect(Object.keys(NOT_SIMULATED).filter(path => !paths.includes(path))).toEqual([])
})

test('what is not simulated says so, and everything else is', { timeout: 60_000 }, async () => {
  const client = await machines.client(2)
  const answers: (readonly [path: string, said: string])[] = []
  for (const method of METHODS) answers.push([grpcPath(method), await answerOf(client, method)])
  const unimplemented = answers.filter(([, said]) => said.startsWith('UNIMPLEMENTED the simulation'))
  expect(Object.fromEntries(unimplemented)).toEqual(
    Object.fromEntries(Object.entries(NOT_SIMULATED).map(([path, says]) => [path, `UNIMPLEMENTED ${says}`])),
  )
})
