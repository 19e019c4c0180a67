import { textAt } from './fields.ts'

/**
 * kubectl sends some objects in the protobuf encoding of Kubernetes whatever the server offers. Enough of it is read here to take those:
 * each message is a table of field numbers. Answers are always JSON, which every client takes.
 */
type Kind = 'text' | 'bytes' | 'number' | 'bool' | Message
type Field = { readonly name: string; readonly kind: Kind; readonly repeated?: boolean; readonly map?: boolean }
type Message = { readonly [number: number]: Field }

const text = (name: string): Field => ({ name, kind: 'text' })
const texts = (name: string): Field => ({ name, kind: 'text', repeated: true })
const number = (name: string): Field => ({ name, kind: 'number' })
const bool = (name: string): Field => ({ name, kind: 'bool' })
const map = (name: string, kind: 'text' | 'bytes' = 'text'): Field => ({ name, kind, map: true })
const inner = (name: string, kind: Message): Field => ({ name, kind })
const list = (name: string, kind: Message): Field => ({ name, kind, repeated: true })

const OWNER: Message = {
  1: text('kind'),
  3: text('name'),
  4: text('uid'),
  5: text('apiVersion'),
  6: bool('controller'),
  7: bool('blockOwnerDeletion'),
}
/** Without the server's own times and managedFields: who sends them does not mean them. */
const META: Message = {
  1: text('name'),
  2: text('generateName'),
  3: text('namespace'),
  5: text('uid'),
  6: text('resourceVersion'),
  11: map('labels'),
  12: map('annotations'),
  13: list('ownerReferences', OWNER),
  14: texts('finalizers'),
}
const metadata = inner('metadata', META)
const REFERENCE: Message = { 1: text('name') }

const DELETE_OPTIONS: Message = {
  1: number('gracePeriodSeconds'),
  2: inner('preconditions', { 1: text('uid'), 2: text('resourceVersion') }),
  3: bool('orphanDependents'),
  4: text('propagationPolicy'),
  5: texts('dryRun'),
}

const ATTRIBUTES: Message = {
  1: text('namespace'),
  2: text('verb'),
  3: text('group'),
  4: text('version'),
  5: text('resource'),
  6: text('subresource'),
  7: text('name'),
}

const MESSAGES: Readonly<Record<string, Message>> = {
  ConfigMap: { 1: metadata, 2: map('data'), 3: map('binaryData', 'bytes'), 4: bool('immutable') },
  DeleteOptions: DELETE_OPTIONS,
  Eviction: { 1: metadata, 2: inner('deleteOptions', DELETE_OPTIONS) },
  Namespace: { 1: metadata },
  Secret: { 1: metadata, 2: map('data', 'bytes'), 3: text('type'), 4: map('stringData'), 5: bool('immutable') },
  SelfSubjectAccessReview: {
    1: metadata,
    2: inner('spec', {
      1: inner('resourceAttributes', ATTRIBUTES),
      2: inner('nonResourceAttributes', { 1: text('path'), 2: text('verb') }),
    }),
  },
  ServiceAccount: { 1: metadata, 3: list('imagePullSecrets', REFERENCE), 4: bool('automountServiceAccountToken') },
}

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** The four bytes that every such body begins with. */
const MAGIC = Buffer.from('k8s\0')

type Raw = { readonly number: number; readonly value: bigint | Buffer }

const rawFields = (bytes: Buffer): Raw[] => {
  const fields: Raw[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw new Error('the protobuf body ends too soon')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const [field, wire] = [tag >> 3, tag & 7]
    if (wire === 0) fields.push({ number: field, value: varint() })
    else {
      const length = wire === 2 ? Number(varint()) : wire === 1 ? 8 : 4
      if (at + length > bytes.length) throw new Error('the protobuf body ends too soon')
      fields.push({ number: field, value: bytes.subarray(at, at + length) })
      at += length
    }
  }
  return fields
}

const valueOf = (kind: Kind, value: bigint | Buffer): unknown => {
  if (kind === 'number') return Number(BigInt.asIntN(64, typeof value === 'bigint' ? value : 0n))
  if (kind === 'bool') return value === 1n
  const bytes = typeof value === 'bigint' ? Buffer.alloc(0) : value
  if (kind === 'text') return bytes.toString('utf8')
  return kind === 'bytes' ? bytes.toString('base64') : message(kind, bytes)
}

const message = (shape: Message, bytes: Buffer): Record<string, unknown> => {
  const object: Record<string, unknown> = {}
  for (const { number: tag, value } of rawFields(bytes)) {
    const field = shape[tag]
    if (!field) continue
    if (field.map) {
      const entry = message({ 1: text('key'), 2: { name: 'value', kind: field.kind } }, value as Buffer)
      const entries = (object[field.name] ??= {}) as Record<string, unknown>
      entries[textAt(entry, 'key')] = entry['value'] ?? ''
    } else if (field.repeated) {
      const items = (object[field.name] ??= []) as unknown[]
      items.push(valueOf(field.kind, value))
    } else {
      const read = valueOf(field.kind, value)
      // Texts are written even where they are empty, and then mean that there is none.
      if (read !== '') object[field.name] = read
    }
  }
  return object
}

/** The object in a body; undefined where its kind is not known here. Throws an Error where the bytes are not what they should be. */
export const fromProtobuf = (body: Buffer): Record<string, unknown> | undefined => {
  if (!body.subarray(0, 4).equals(MAGIC)) throw new Error('the body does not begin as a Kubernetes object in protobuf')
  const envelope = rawFields(body.subarray(4))
  const part = (tag: number): Buffer => {
    const found = envelope.find(field => field.number === tag)?.value
    return Buffer.isBuffer(found) ? found : Buffer.alloc(0)
  }
  const type = message({ 1: text('apiVersion'), 2: text('kind') }, part(1))
  const shape = MESSAGES[String(type['kind'])]
  return shape && { ...type, ...message(shape, part(2)) }
}
