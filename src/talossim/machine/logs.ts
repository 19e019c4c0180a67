import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { JournalEntry } from '../../world/journal.ts'
import { COMPONENTS } from '../../world/kubernetes-config.ts'
import { versionOf } from '../../world/machine.ts'
import { releaseOf } from '../../world/releases.ts'
import { lastWordsOf } from '../../world/static-pods.ts'
import type { Call, StreamHandler } from '../call.ts'
import { untilOver } from '../call.ts'
import { streaming } from '../dispatch.ts'
import { containerNamed } from './containers.ts'
import { INNER_LOGS } from './system.ts'

const methods = MachineService.method

/** The machine's part of the world's journal since its last boot: all that there is to log. */
const entriesOf = ({ site, machine }: Call): readonly JournalEntry[] =>
  site.journal.entries().filter(e => e.machine === machine.name && e.at >= machine.bootedAt)

const follow = async (call: Call, tell: (entry: JournalEntry) => void): Promise<Answer<void>> => {
  const stop = call.site.journal.onEntry(entry => {
    if (entry.machine === call.machine.name) tell(entry)
  })
  await untilOver(call.over)
  stop()
  return answer(undefined)
}

const encoder = new TextEncoder()
const textOf = ({ what, detail }: JournalEntry): string => (detail === '' ? what : `${what}: ${detail}`)

/** What every kernel begins with. */
const firstWords = ({ machine }: Call): string => {
  const at = new Date(machine.bootedAt).toISOString()
  return `kern:  notice: [${at}]: Linux version ${releaseOf(versionOf(machine)).kernel} (simulated) #1 SMP\nuser: warning: [${at}]: [talos] booting Talos ${versionOf(machine)}\n`
}

const dmesg: StreamHandler<typeof methods.dmesg> = async (call, request, send) => {
  const tell = (entry: JournalEntry): void =>
    send({ bytes: encoder.encode(`user: warning: [${new Date(entry.at).toISOString()}]: [talos] ${textOf(entry)}\n`) })
  if (!request.tail) {
    send({ bytes: encoder.encode(firstWords(call)) })
    for (const entry of entriesOf(call)) tell(entry)
  }
  return request.follow ? follow(call, tell) : answer(undefined)
}

/** The runtime keeps what the container of a static pod wrote after it has ended. */
const lastWordsIn = ({ site, machine }: Call, id: string): string | undefined => {
  const [pod, container] = id.split(':')
  const component = COMPONENTS.find(name => name === container && pod === `kube-system/${name}-${machine.name}`)
  return component && lastWordsOf(site, machine, component)
}

const logs: StreamHandler<typeof methods.logs> = async (call, request, send) => {
  const { namespace, id, tailLines } = request
  if (namespace === '') return refuse('InvalidArgument', "namespace can't be empty")
  if (namespace !== 'system' && id !== 'kubelet') {
    const words = lastWordsIn(call, id)
    if (words !== undefined) {
      send({ bytes: encoder.encode(`${words}\n`) })
      return answer(undefined)
    }
    const container = containerNamed(call, namespace, request.driver, id)
    if (!container.ok) return container
  } else if (!call.machine.services.has(id) && !INNER_LOGS.includes(id))
    return refuse('Unknown', `log ${JSON.stringify(id)} was not registered`)
  // Only machined has something to say; the other services of the world and the containers keep silent.
  if (id !== 'machined') return request.follow ? follow(call, () => {}) : answer(undefined)
  const tell = (entry: JournalEntry): void =>
    send({ bytes: encoder.encode(`[talos] ${new Date(entry.at).toISOString()} ${textOf(entry)}\n`) })
  const entries = entriesOf(call)
  for (const entry of tailLines < 0 ? entries : entries.slice(entries.length - Math.min(tailLines, entries.length))) tell(entry)
  return request.follow ? follow(call, tell) : answer(undefined)
}

export const logMethods = {
  dmesg: streaming(methods.dmesg, dmesg),
  logs: streaming(methods.logs, logs),
}
