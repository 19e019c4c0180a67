import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { TimeService } from '../../proto/gen/time/time_pb.ts'
import { answer, refuse } from '../world/answer.ts'
import { clockOf } from '../world/certificates.ts'
import type { Call } from './call.ts'
import { unary } from './dispatch.ts'

const methods = TimeService.method

/** What Talos asks where its configuration names nobody else. */
const DEFAULT_SERVER = 'time.cloudflare.com'

/** The clocks of time servers are the world's. */
const time = ({ site, machine }: Call, server: string) => {
  if (server === '') return refuse('InvalidArgument', 'ntp server is required')
  if (site.faults.of(machine).timeNeverSyncs) return refuse('Unknown', `error querying NTP server ${JSON.stringify(server)}: i/o timeout`)
  const [localtime, remotetime] = [clockOf(site, machine), site.schedule.now()].map(timestampFromMs)
  return answer({ messages: [{ server, localtime, remotetime }] })
}

export const timeMethods = {
  time: unary(methods.time, call => time(call, DEFAULT_SERVER)),
  timeCheck: unary(methods.timeCheck, (call, { server }) => time(call, server)),
}
