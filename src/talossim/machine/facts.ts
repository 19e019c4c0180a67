import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import type { Service } from '../../world/services.ts'
import type { StreamHandler, UnaryHandler } from '../call.ts'
import { streaming, unary } from '../dispatch.ts'

const methods = MachineService.method

const version: UnaryHandler<typeof methods.version> = ({ machine }) => {
  const { platform, arch } = machine
  const mode = platform === 'metal' || platform === 'container' ? platform : 'cloud'
  return answer({
    messages: [
      {
        version: { tag: versionOf(machine), sha: 'simulated', goVersion: 'none', os: 'linux', arch },
        platform: { name: platform, mode },
        ...(machine.config === '' ? {} : { features: { rbac: true } }),
      },
    ],
  })
}

const hostname: UnaryHandler<typeof methods.hostname> = ({ machine }) => answer({ messages: [{ hostname: machine.hostname }] })

const systemStat: UnaryHandler<typeof methods.systemStat> = ({ machine }) =>
  answer({ messages: [{ bootTime: BigInt(Math.floor(machine.bootedAt / 1000)) }] })

const serviceInfo = ({ id, state, health, healthMessage, healthChangedAt, events }: Service) => ({
  id,
  state,
  events: { events: events.map(event => ({ msg: event.message, state: event.state, ts: timestampFromMs(event.at) })) },
  health: {
    unknown: health === 'unknown',
    healthy: health === 'healthy',
    lastMessage: healthMessage,
    lastChange: timestampFromMs(healthChangedAt),
  },
})

const serviceList: UnaryHandler<typeof methods.serviceList> = ({ machine }) => {
  const services = [...machine.services.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).map(serviceInfo)
  return answer({ messages: [{ services }] })
}

const FILES: Readonly<Record<string, (machine: Machine) => string>> = {
  '/proc/sys/kernel/random/boot_id': machine => `${machine.bootID}\n`,
  '/etc/hostname': machine => `${machine.hostname}\n`,
}

const read: StreamHandler<typeof methods.read> = async ({ machine }, { path }, send) => {
  const file = FILES[path]
  if (file) {
    send({ bytes: new TextEncoder().encode(file(machine)) })
    return answer(undefined)
  }
  if (Object.keys(FILES).some(known => known.startsWith(`${path.replace(/\/$/, '')}/`)))
    return refuse('Unknown', 'path must be a regular file')
  return refuse('NotFound', `stat ${path}: no such file or directory`)
}

/** What a machine says about itself without changing anything. */
export const factMethods = {
  version: unary(methods.version, version),
  hostname: unary(methods.hostname, hostname),
  systemStat: unary(methods.systemStat, systemStat),
  serviceList: unary(methods.serviceList, serviceList),
  read: streaming(methods.read, read),
}
