import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer } from '../../world/answer.ts'
import { versionOf } from '../../world/machine.ts'
import type { Service } from '../../world/services.ts'
import type { UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'

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

/** What a machine says about itself without changing anything. */
export const factMethods = {
  version: unary(methods.version, version),
  hostname: unary(methods.hostname, hostname),
  serviceList: unary(methods.serviceList, serviceList),
}
