import type { TLSSocket } from 'node:tls'
import type { IncomingMessage } from 'node:http'
import type { User } from './admission.ts'
import { textAt } from './fields.ts'
import { Refusal } from './refusal.ts'

/** What a request wants to do with a resource, as authorisers see it. */
export type ResourceAttributes = {
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
}

export type Allow = (user: User, verb: string, resource: ResourceAttributes) => boolean

const REVIEWS = ['selfsubjectaccessreviews', 'selfsubjectreviews']

/** Masters may all, everybody else may read, and ask what he may. */
export const readersAndMasters: Allow = (user, verb, { resource }) =>
  user.groups.includes('system:masters') || ['get', 'list', 'watch'].includes(verb) || REVIEWS.includes(resource)

export type Tokens = Readonly<Record<string, { readonly user: string; readonly groups: readonly string[] }>>

const texts = (value: unknown): string[] =>
  (Array.isArray(value) ? (value as readonly unknown[]) : [value]).filter(each => typeof each === 'string')

/** Who asks: by bearer token, or by a client certificate that our authority signed. Undefined where neither is good. */
export const authenticated = (request: IncomingMessage, tokens: Tokens): User | undefined => {
  const [, token] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '') ?? []
  const known = token !== undefined && Object.hasOwn(tokens, token) ? tokens[token] : undefined
  const everybody = 'system:authenticated'
  if (known) return { name: known.user, groups: [...known.groups, everybody] }
  if (token !== undefined) return undefined
  const socket = request.socket as TLSSocket
  if (!socket.authorized) return undefined
  const subject: unknown = socket.getPeerCertificate().subject
  const name = texts((subject as { CN?: unknown } | undefined)?.CN)[0]
  return name === undefined ? undefined : { name, groups: [...texts((subject as { O?: unknown }).O), everybody] }
}

/** 403 in the words of the real server. */
export const forbidden = (user: User, verb: string, to: ResourceAttributes): Refusal => {
  const resource = to.subresource === '' ? to.resource : `${to.resource}/${to.subresource}`
  const where = to.namespace === '' ? 'at the cluster scope' : `in the namespace "${to.namespace}"`
  const full = to.group === '' ? to.resource : `${to.resource}.${to.group}`
  const what = to.name === '' ? full : `${full} "${to.name}"`
  const message = `${what} is forbidden: User "${user.name}" cannot ${verb} resource "${resource}" in API group "${to.group}" ${where}`
  return new Refusal(403, 'Forbidden', message, {
    ...(to.name === '' ? {} : { name: to.name }),
    ...(to.group === '' ? {} : { group: to.group }),
    kind: to.resource,
  })
}

/** Answers a SelfSubjectReview. */
export const selfReview = (user: User) => ({
  kind: 'SelfSubjectReview',
  apiVersion: 'authentication.k8s.io/v1',
  metadata: {},
  status: { userInfo: { username: user.name, groups: user.groups } },
})

/** Answers a SelfSubjectAccessReview. */
export const accessReview = (user: User, body: unknown, allow: Allow) => {
  const asked = (field: string): string => textAt(body, 'spec', 'resourceAttributes', field)
  const allowed = allow(user, asked('verb'), {
    group: asked('group'),
    resource: asked('resource'),
    subresource: asked('subresource'),
    namespace: asked('namespace'),
    name: asked('name'),
  })
  return {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec: (body as { spec?: unknown } | undefined)?.spec,
    status: { allowed },
  }
}
