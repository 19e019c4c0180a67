import { gzipSync } from 'node:zlib'
import { stringify } from 'yaml'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { StreamHandler, UnaryHandler } from '../call.ts'
import { streaming, unary } from '../dispatch.ts'
import { notOnWorker } from './etcd.ts'
import { tarOf } from './tar.ts'

const methods = MachineService.method

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const kubeconfig: StreamHandler<typeof methods.kubeconfig> = async ({ site, machine, access }, _, send) => {
  const refusal = notOnWorker(machine, 'kubeconfig')
  if (refusal) return refusal
  const admin = await access?.kubernetesAdmin?.()
  if (!admin) return refuse('FailedPrecondition', 'k8s API server CA config is not set')
  const cluster = site.clusterName
  const name = `admin@${cluster}`
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: cluster, cluster: { server: admin.server, 'certificate-authority-data': base64(admin.ca) } }],
    users: [{ name, user: { 'client-certificate-data': base64(admin.crt), 'client-key-data': base64(admin.key) } }],
    contexts: [{ name, context: { cluster, namespace: 'default', user: name } }],
    'current-context': name,
  }
  const text = Buffer.from(stringify(config, { lineWidth: 0 }))
  const file = { path: 'kubeconfig', mode: 0o600, modifiedMs: site.schedule.now(), size: text.length, content: [text] }
  send({ bytes: gzipSync(Buffer.concat([...tarOf([file])])) })
  return answer(undefined)
}

const generate: UnaryHandler<typeof methods.generateClientConfiguration> = async ({ site, machine, access }, { roles, crtTtl }) => {
  if (machine.role !== 'controlplane')
    return refuse('FailedPrecondition', "client configuration (talosconfig) can't be generated on worker nodes")
  const ttlMs = Number(crtTtl?.seconds ?? 0n) * 1000 + (crtTtl?.nanos ?? 0) / 1e6
  if (ttlMs <= 0) return refuse('InvalidArgument', 'crt_ttl should be positive')
  if (!access?.talosClient) return refuse('Unimplemented', 'the simulation was given no authority to sign with')
  const { ca, crt, key } = await access.talosClient(roles, ttlMs)
  const [first = ''] = roles
  const context = roles.length === 1 ? `${first.replace(/^os:/, '')}@${site.clusterName}` : site.clusterName
  const config = { context, contexts: { [context]: { endpoints: [], ca: base64(ca), crt: base64(crt), key: base64(key) } } }
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
  return answer({
    messages: [{ ca: bytes(ca), crt: bytes(crt), key: bytes(key), talosconfig: bytes(stringify(config, { lineWidth: 0 })) }],
  })
}

/** Credentials that a machine hands out. */
export const accessMethods = {
  kubeconfig: streaming(methods.kubeconfig, kubeconfig),
  generateClientConfiguration: unary(methods.generateClientConfiguration, generate),
}
