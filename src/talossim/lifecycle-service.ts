import { LifecycleService } from '../../proto/gen/machine/lifecycle_pb.ts'
import type { InstallOutcome } from '../ports/talos.ts'
import type { Answer } from '../world/answer.ts'
import { answer, refuse } from '../world/answer.ts'
import { install } from '../world/install.ts'
import type { StreamHandler } from './call.ts'
import { streaming } from './dispatch.ts'
import { refuseInstance } from './image-service.ts'

const methods = LifecycleService.method

const upgrade: StreamHandler<typeof methods.upgrade> = async ({ site, machine, over }, request, send) => {
  const refusal = refuseInstance(request.containerd)
  if (refusal) return refusal.code === 'InvalidArgument' ? refuse('Internal', `upgrade failed: ${refusal.message}`) : refusal
  const line = (message: string): void => send({ progress: { response: { case: 'message', value: message } } })
  const outcome = await new Promise<Answer<InstallOutcome>>(resolve => {
    const hangUp = install(site, machine, request.source?.imageName ?? '', { line, end: resolve })
    over.addEventListener('abort', hangUp, { once: true })
  })
  if (!outcome.ok) return outcome
  send({ progress: { response: { case: 'exitCode', value: outcome.value.exitCode } } })
  return answer(undefined)
}

/** Every machine of the world has been installed long ago. */
const installNew: StreamHandler<typeof methods.install> = async () => refuse('AlreadyExists', 'machine is already installed')

export const lifecycleMethods = { install: streaming(methods.install, installNew), upgrade: streaming(methods.upgrade, upgrade) }
