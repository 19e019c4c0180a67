import type {
  DescMethodClientStreaming,
  MessageInitShape,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from '@bufbuild/protobuf'
import type { Answer } from '../world/answer.ts'
import type { Machine } from '../world/machine.ts'
import type { ServerDrain } from '../world/server-drain.ts'
import type { Site } from '../world/site.ts'
import type { ResourceStates } from './cosi/states.ts'

/** Credentials that machines hand out. They come from outside, as the authorities do. Texts are PEM. */
export type Access = {
  /** An administrator of the cluster's Kubernetes; undefined where there is none. */
  readonly kubernetesAdmin?: () => Promise<(Credentials & { readonly server: string }) | undefined>
  /** A client of the Talos API. */
  readonly talosClient?: (roles: readonly string[], ttlMs: number) => Promise<Credentials>
  /** What the machines show of their roots of trust. Without it they show none. */
  readonly authorities?: Authorities
}

export type KeyPair = { readonly crt: string; readonly key: string }

export type Authorities = {
  readonly talos: KeyPair
  readonly kubernetes?: KeyPair
  readonly etcd?: KeyPair
  readonly aggregator?: KeyPair
}

export type Credentials = KeyPair & { readonly ca: string }

/** What all machines' servers share. */
export type Ground = {
  readonly access?: Access | undefined
  readonly site: Site
  readonly drain: ServerDrain
  readonly resources: ResourceStates
}

/** One call as the machine that serves it sees it, after routing and the role's check. */
export type Call = Ground & {
  readonly machine: Machine
  readonly roles: ReadonlySet<string>
  /** Aborted when the caller gave up or the machine went away. */
  readonly over: AbortSignal
}

/** Answers of a method, without the metadata that a fan-out adds. */
export type UnaryHandler<M extends DescMethodUnary> = (
  call: Call,
  request: MessageShape<M['input']>,
) => Answer<MessageInitShape<M['output']>> | Promise<Answer<MessageInitShape<M['output']>>>

/** Reads what is sent and answers once; it may answer before the end. */
export type UploadHandler<M extends DescMethodClientStreaming> = (
  call: Call,
  messages: AsyncIterable<MessageShape<M['input']>>,
) => Promise<Answer<MessageInitShape<M['output']>>>

/**
 * Sends messages until its promise settles; an answer that is not OK becomes the status of the stream. Whoever sends much waits for `drained`, which
 * settles when the caller has taken most of it, or is gone.
 */
export type StreamHandler<M extends DescMethodServerStreaming> = (
  call: Call,
  request: MessageShape<M['input']>,
  send: (message: MessageInitShape<M['output']>) => void,
  drained: () => Promise<void>,
) => Promise<Answer<void>>

/** Looks again after every change of the world until the condition holds; false when the call was over before. */
export const until = (site: Site, over: AbortSignal, condition: () => boolean): Promise<boolean> => {
  if (condition()) return Promise.resolve(true)
  if (over.aborted) return Promise.resolve(false)
  return new Promise(resolve => {
    const end = (held: boolean): void => {
      unlisten()
      unread()
      over.removeEventListener('abort', giveUp)
      resolve(held)
    }
    const giveUp = (): void => end(false)
    const look = (): void => {
      if (condition()) end(true)
    }
    const unlisten = site.listen(look)
    const unread = site.journal.onEntry(look)
    over.addEventListener('abort', giveUp, { once: true })
  })
}

/** Settles when the call is over. */
export const untilOver = (over: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (over.aborted) resolve()
    else over.addEventListener('abort', () => resolve(), { once: true })
  })
