// A plain client of a Kubernetes API, and the record of what it was answered.
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'

export type Server = {
  readonly url: string
  readonly caPem: string
  readonly tokens: { readonly admin: string; readonly viewer: string }
}

export type Call = {
  readonly method?: string
  readonly path: string
  readonly body?: unknown
  readonly contentType?: string
  readonly accept?: string
  readonly token?: string
  readonly userAgent?: string
}

export type Reply = { readonly status: number; readonly body: any; readonly warnings: readonly string[] }

export type WatchEvent = { readonly type: string; readonly object: any }

const open = (server: Server, call: Call, answered: (incoming: IncomingMessage) => void, failed: (error: Error) => void) => {
  const text = call.body === undefined ? undefined : JSON.stringify(call.body)
  const outgoing = httpsRequest(
    server.url + call.path,
    {
      method: call.method ?? 'GET',
      ca: server.caPem,
      agent: false,
      headers: {
        authorization: `Bearer ${call.token ?? server.tokens.admin}`,
        accept: call.accept ?? 'application/json',
        'user-agent': call.userAgent ?? 'conformance/1.0',
        ...(text === undefined
          ? {}
          : { 'content-type': call.contentType ?? 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    },
    answered,
  )
  outgoing.on('error', failed)
  outgoing.end(text)
  return outgoing
}

export const ask = (server: Server, call: Call): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const outgoing = open(
      server,
      call,
      incoming => {
        let text = ''
        incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        incoming.on('error', reject).on('end', () => {
          clearTimeout(late)
          const json = /json/.test(incoming.headers['content-type'] ?? '')
          const warning = incoming.headers['warning']
          const warnings = warning === undefined ? [] : [warning].flat()
          resolve({ status: incoming.statusCode ?? 0, body: json ? JSON.parse(text) : text, warnings })
        })
      },
      reject,
    )
    const late = setTimeout(() => outgoing.destroy(new Error(`no answer to ${call.path} within 20 s`)), 20_000)
  })

export type Watch = {
  /** The events so far and those to come, until there are so many or the watch ended. */
  readonly events: (count: number) => Promise<WatchEvent[]>
  /** Until the server ends it. */
  readonly ended: () => Promise<WatchEvent[]>
  readonly stop: () => void
}

/** Resolves when the server has answered the head of the watch. */
export const watch = (server: Server, call: Call): Promise<Watch> =>
  new Promise((resolve, reject) => {
    const events: WatchEvent[] = []
    let over = false
    const waiting = new Set<() => void>()
    const until = (enough: () => boolean, what: string): Promise<WatchEvent[]> =>
      new Promise((done, failed) => {
        const late = setTimeout(
          () => failed(new Error(`${what} of ${call.path} did not come within 20 s; so far: ${JSON.stringify(events)}`)),
          20_000,
        )
        const look = (): void => {
          if (!enough()) return
          clearTimeout(late)
          waiting.delete(look)
          done([...events])
        }
        waiting.add(look)
        look()
      })
    const outgoing = open(
      server,
      call,
      incoming => {
        let rest = ''
        const finish = (): void => {
          over = true
          for (const look of waiting) look()
        }
        incoming.setEncoding('utf8').on('data', (chunk: string) => {
          const lines = (rest + chunk).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) if (line !== '') events.push(JSON.parse(line) as WatchEvent)
          for (const look of waiting) look()
        })
        incoming.on('end', finish).on('close', finish)
        incoming.on('error', () => finish())
        resolve({
          events: count => until(() => events.length >= count || over, `event ${count}`),
          ended: () => until(() => over, 'the end'),
          stop: () => outgoing.destroy(),
        })
      },
      reject,
    )
  })

/** Asks until the answer is as wanted; the last answer. */
export const askUntil = async (server: Server, call: Call, wanted: (reply: Reply) => boolean): Promise<Reply> => {
  const deadline = Date.now() + 20_000
  for (;;) {
    const reply = await ask(server, call)
    if (wanted(reply)) return reply
    if (Date.now() > deadline) throw new Error(`${call.path} never answered as wanted: ${JSON.stringify(reply.body)}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
