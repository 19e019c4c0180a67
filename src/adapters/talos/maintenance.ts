import { createSecureContext } from 'node:tls'
import { create, fromBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { State } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { grpcMethod } from '../../../proto/grpc.ts'
import type { Clock } from '../../ports/clock.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import { grpcTarget, parseAddress } from './address.ts'
import { type CallFailure, classify } from './classify.ts'
import { resourceTypes } from './resource-types.ts'

const deadlineMs = 10_000

/**
 * The UUID of whatever answers in maintenance mode at an address. Its certificate is of its own making, and it asks for none of ours, so neither side
 * proves anything: the answer may end a wait, and nothing may be sent on the strength of it. A machine with a configuration refuses such a caller.
 */
export async function readMaintenance(address: string, clock: Clock): Promise<Result<{ readonly uuid: string }>> {
  const machine = parseAddress(address)
  if (!machine) return failed('invalid', `${address}: this is no address of a machine; host or host:port would be`)
  const { namespace, type, schema } = resourceTypes.systemInformation
  const { path, requestSerialize, responseDeserialize } = grpcMethod(State.method.get)
  const site = { address, call: `State.Get ${type} in maintenance` }
  const anybody = credentials.createFromSecureContext(createSecureContext({ minVersion: 'TLSv1.2' }), { rejectUnauthorized: false })
  const client = new Client(grpcTarget(machine), anybody, {
    'grpc.enable_http_proxy': 0,
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.ssl_target_name_override': 'machine.ichor.invalid',
  })
  const request = create(State.method.get.input, { namespace, type, id: 'systeminformation' })
  const ended = (failure: CallFailure) => ({ ok: false as const, fault: classify(failure, site) })
  let stop = () => {}
  try {
    return await new Promise(resolve => {
      // grpc-js does not count the handshake of a machine that says nothing.
      stop = clock.after(deadlineMs + 1000, () => resolve(ended({ code: 4, details: `no answer within ${deadlineMs / 1000} s` })))
      const deadline = new Date(Date.now() + deadlineMs)
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), { deadline }, (error, answer) => {
        const spec = answer?.resource?.spec?.protoSpec
        if (error || !spec)
          return resolve(ended({ code: error?.code ?? 13, details: error?.details ?? 'the answer has no resource in it' }))
        try {
          resolve(ok({ uuid: fromBinary(schema, spec).uuid }))
        } catch {
          resolve(failed('unknown', `${address}: ${site.call}: its content is not a ${schema.typeName}`))
        }
      })
    })
  } finally {
    stop()
    client.close()
  }
}
