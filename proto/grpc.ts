import { type DescMethod, type DescService, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'

/** The methods of a service by their local name (`etcdMemberList`), each with the types of its request and answer. */
type MethodsOf<S extends DescService> = S extends { method: infer M extends Record<string, DescMethod> } ? M : never

/** A method in the form grpc-js takes on both sides: `client.makeUnaryRequest(m.path, m.requestSerialize, …)`, `server.addService({ … })`. */
export type GrpcMethod<M extends DescMethod> = MethodDefinition<MessageShape<M['input']>, MessageShape<M['output']>>

/** A service in the form grpc-js takes: `server.addService(grpcService(MachineService), handlers)`. */
export type GrpcService<S extends DescService> = { readonly [K in keyof MethodsOf<S>]: GrpcMethod<MethodsOf<S>[K]> } & ServiceDefinition

/** What a method is called on the wire: `/machine.MachineService/Reboot`. */
export function grpcPath(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`
}

export function grpcMethod<M extends DescMethod>(method: M): GrpcMethod<M> {
  const { input, output, methodKind } = method
  return {
    path: grpcPath(method),
    originalName: method.localName,
    requestStream: methodKind === 'client_streaming' || methodKind === 'bidi_streaming',
    responseStream: methodKind === 'server_streaming' || methodKind === 'bidi_streaming',
    requestSerialize: message => asBuffer(toBinary(input as M['input'], message)),
    requestDeserialize: bytes => fromBinary(input as M['input'], bytes) as MessageShape<M['input']>,
    responseSerialize: message => asBuffer(toBinary(output as M['output'], message)),
    responseDeserialize: bytes => fromBinary(output as M['output'], bytes) as MessageShape<M['output']>,
  }
}

export function grpcService<S extends DescService>(service: S): GrpcService<S> {
  return Object.fromEntries(service.methods.map(method => [method.localName, grpcMethod(method)])) as GrpcService<S>
}

/** The same bytes, not a copy: a snapshot is millions of small messages. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
