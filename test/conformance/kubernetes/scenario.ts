import type { Call, Reply, Server, Watch, WatchEvent } from './client.ts'
import { ask, askUntil, watch } from './client.ts'
import { normal } from './normal.ts'

export type Step = { readonly step: string; readonly [answer: string]: unknown }

/** Asks one server and records what it answers, made comparable. */
export type Api = {
  readonly server: Server
  /** A namespace of its own. */
  readonly namespace: string
  /** Asks, records status and body (or what `see` takes from it), and gives the answer as it was. */
  step(name: string, call: Call, see?: (body: any) => unknown): Promise<Reply>
  /** Asks without a record: the ground that a case needs. */
  quiet(call: Call): Promise<Reply>
  until(call: Call, wanted: (reply: Reply) => boolean): Promise<Reply>
  watch(call: Call): Promise<Watch>
  record(step: string, seen: unknown): void
}

export type Scenario = {
  readonly name: string
  readonly run: (api: Api) => Promise<void>
  /** What both answers are not compared in, and why. Each is a difference that stays. */
  readonly apart?: readonly { readonly field: string; readonly why: string }[]
}

const withoutField = (value: unknown, path: readonly string[]): unknown => {
  const [field, ...rest] = path
  if (Array.isArray(value)) return value.map(item => withoutField(item, path))
  if (typeof value !== 'object' || value === null || field === undefined) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== field || rest.length > 0)
      .map(([key, item]) => [key, withoutField(item, key === field ? rest : path)]),
  )
}

/** Runs a case against a server; the record of its steps. */
export const play = async (scenario: Scenario, server: Server): Promise<readonly Step[]> => {
  const namespace = scenario.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
  const steps: Step[] = []
  const record = (step: string, seen: unknown): void => {
    let shown = normal(seen)
    for (const { field } of scenario.apart ?? []) shown = withoutField(shown, field.split('.'))
    steps.push({ step, ...(shown as object) })
  }
  await ask(server, { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } })
  await scenario.run({
    server,
    namespace,
    record,
    quiet: async call => {
      const reply = await ask(server, call)
      if (reply.status >= 400) throw new Error(`${call.method ?? 'GET'} ${call.path}: ${JSON.stringify(reply.body)}`)
      return reply
    },
    until: (call, wanted) => askUntil(server, call, wanted),
    watch: call => watch(server, call),
    step: async (name, call, see = body => body) => {
      const reply = await ask(server, call)
      record(name, {
        status: reply.status,
        body: reply.status < 400 ? see(reply.body) : reply.body,
        ...(reply.warnings.length > 0 ? { warnings: reply.warnings } : {}),
      })
      return reply
    },
  })
  return steps
}

/** What of watch events is compared. */
export const brief = (events: readonly WatchEvent[]): unknown[] =>
  events.map(({ type, object }) => ({
    type,
    kind: object.kind,
    name: object.metadata?.name,
    labels: object.metadata?.labels,
    annotations: object.metadata?.annotations,
    code: object.code,
    reason: object.reason,
  }))
