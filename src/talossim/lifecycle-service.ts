import type { ContainerdInstance } from '../../proto/gen/common/common_pb.ts'
import { LifecycleService } from '../../proto/gen/machine/lifecycle_pb.ts'
import type { InstallOutcome } from '../ports/talos.ts'
import type { Answer } from '../world/answer.ts'
import { answer, refuse } from '../world/answer.ts'
import { install, installAnew } from '../world/install.ts'
import type { Ends } from '../world/stream.ts'
import type { Call, StreamHandler } from './call.ts'
import { streaming } from './dispatch.ts'
import { refuseInstance } from './image-service.ts'

const methods = LifecycleService.method

type Progress = { readonly progress: { readonly response: { case: 'message'; value: string } | { case: 'exitCode'; value: number } } }

/** Passes on what the installer says, and its exit code at last. */
const running = async (
  { over }: Call,
  send: (message: Progress) => void,
  begin: (ends: Ends<InstallOutcome>) => () => void,
): Promise<Answer<void>> => {
  const line = (value: string): void => send({ progress: { response: { case: 'message', value } } })
  const outcome = await new Promise<Answer<InstallOutcome>>(resolve => {
    over.addEventListener('abort', begin({ line, end: resolve }), { once: true })
  })
  if (!outcome.ok) return outcome
  send({ progress: { response: { case: 'exitCode', value: outcome.value.exitCode } } })
  return answer(undefined)
}

/** A containerd that cannot be is found by the attempt, not among the arguments. */
const inInstance = (what: string, instance: ContainerdInstance | undefined): Answer<never> | undefined => {
  const refusal = refuseInstance(instance)
  return refusal?.code === 'InvalidArgument' ? refuse('Internal', `${what} failed: ${refusal.message}`) : refusal
}

const upgrade: StreamHandler<typeof methods.upgrade> = async (call, request, send) => {
  const { site, machine } = call
  return (
    inInstance('upgrade', request.containerd) ?? running(call, send, ends => install(site, machine, request.source?.imageName ?? '', ends))
  )
}

const installNew: StreamHandler<typeof methods.install> = async (call, request, send) => {
  const { site, machine } = call
  const what = { image: request.source?.imageName ?? '', disk: request.destination?.disk ?? '' }
  return inInstance('installation', request.containerd) ?? running(call, send, ends => installAnew(site, machine, what, ends))
}

export const lifecycleMethods = { install: streaming(methods.install, installNew), upgrade: streaming(methods.upgrade, upgrade) }
