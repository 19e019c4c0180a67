import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { refuse } from '../../world/answer.ts'
import { streaming } from '../dispatch.ts'
import { INTERFACES } from './counters.ts'

const methods = MachineService.method

/** There are no packets: what the machines say to each other happens inside the world. An interface that is not there is refused as on real machines. */
export const packetCaptureMethods = {
  packetCapture: streaming(methods.packetCapture, async (_, request) =>
    INTERFACES.includes(request.interface)
      ? refuse('Unimplemented', 'the simulation has no packets to capture')
      : refuse('NotFound', `interface ${JSON.stringify(request.interface)} not found`),
  ),
}
