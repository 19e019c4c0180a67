import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { TimeService } from '../../proto/gen/time/time_pb.ts'
import { answer } from '../world/answer.ts'
import type { Call } from './call.ts'
import { unary } from './dispatch.ts'

const methods = TimeService.method

/** What Talos asks where its configuration names nobody else. */
const DEFAULT_SERVER = 'time.cloudflare.com'

/** The machines' clocks are the world's, and so is everybody's. */
const time = ({ site }: Call, server: string) => {
  const now = timestampFromMs(site.schedule.now())
  return answer({ messages: [{ server, localtime: now, remotetime: now }] })
}

export const timeMethods = {
  time: unary(methods.time, call => time(call, DEFAULT_SERVER)),
  timeCheck: unary(methods.timeCheck, (call, { server }) => time(call, server)),
}
