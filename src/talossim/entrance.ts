import { type ConnectionInjector, type Server, ServerCredentials } from '@grpc/grpc-js'
import { isValidAt, type ServerCertificate } from '../world/certificates.ts'
import type { Machine } from '../world/machine.ts'
import { isInMaintenance } from '../world/machine.ts'
import type { Site } from '../world/site.ts'
import type { Line, LineState } from './line.ts'
import { createLine } from './line.ts'
import { slowly } from './pace.ts'

/** What a machine shows, as PEM text. The key may carry Talos' own label, `ED25519 PRIVATE KEY`. */
export type MachineCertificate = { readonly crt: string; readonly key: string }

/** What a machine's certificate says. */
export type CertificateFacts = {
  readonly name: string
  readonly hosts: readonly string[]
  readonly notBefore: Date
  readonly notAfter: Date
}

export type MachinesPki = {
  /** Authorities whose client certificates are accepted: one or more certificates, as PEM text. */
  readonly acceptedCAs: string
  /** Signs a certificate for a machine with the cluster's authority: a new one each time. */
  readonly certify: (facts: CertificateFacts) => Promise<MachineCertificate>
  /** Shown in maintenance, to clients that trust nobody. Default: one of `certify`, which real ones do not have then. */
  readonly maintenance?: MachineCertificate
}

/** The ports of one machine, one on each of its addresses. */
export type Entrance = {
  /** To be called after every change of the machine. */
  readonly look: () => Promise<void>
  readonly close: () => Promise<void>
}

const pairOf = ({ crt, key }: MachineCertificate): { readonly cert_chain: Buffer; readonly private_key: Buffer } => ({
  cert_chain: Buffer.from(crt),
  // OpenSSL refuses Talos' label; what is inside is the usual PKCS#8.
  private_key: Buffer.from(key.replaceAll(' ED25519 PRIVATE KEY-----', ' PRIVATE KEY-----')),
})

const stateOf = (machine: Machine): LineState => {
  if (machine.cut) return 'silent'
  return machine.powered && machine.apid ? 'open' : 'closed'
}

/** Certificates carry whole seconds, and nobody's clock is exact. */
const SLACK_MS = 2000

/** What is still unanswered then, such as a watch, is cut off. */
const MAINTENANCE_ENDS_WITHIN_MS = 5000

/**
 * Time may pass faster in the world than here, so a certificate is signed for as long before and after the present as it has there, and again when it
 * begins or expires there.
 */
const datesOf = ({ notBefore, notAfter }: ServerCertificate, now: number): Pick<CertificateFacts, 'notBefore' | 'notAfter'> => {
  const here = (ms: number): Date => new Date(Date.now() + ms - now)
  const isOver = now > notAfter
  return {
    notBefore: new Date(here(notBefore).getTime() - SLACK_MS),
    notAfter: isOver ? new Date(here(notAfter).getTime() - SLACK_MS) : here(notAfter),
  }
}

/** Opens, closes and silences the ports as the machine wants it, and shows the certificate that it has. */
export const createEntrance = (options: {
  readonly site: Site
  readonly machine: Machine
  readonly server: Server
  readonly port: number
  readonly pki: MachinesPki
  readonly onError: (error: unknown) => void
}): Entrance => {
  const { site, machine, server, port, pki, onError } = options
  const lines = new Map<string, { readonly line: Line; state: LineState }>()
  const cas = Buffer.from(pki.acceptedCAs)
  let strict: ConnectionInjector | undefined
  let open: ConnectionInjector | undefined
  let shown = ''
  let isClosed = false

  const certify = async (): Promise<void> => {
    const { certificate } = machine
    const now = site.schedule.now()
    const key = certificate ? `${certificate.serial} ${machine.bootID} ${isValidAt(certificate, now)}` : 'own'
    if (key === shown) return
    shown = key
    if (certificate) {
      const pair = await pki.certify({ name: machine.name, hosts: certificate.hosts, ...datesOf(certificate, now) })
      strict = server.createConnectionInjector(ServerCredentials.createSsl(cas, [pairOf(pair)], true))
    } else {
      const day = { notBefore: new Date(Date.now() - SLACK_MS), notAfter: new Date(Date.now() + 86_400_000) }
      const pair = pki.maintenance ?? (await pki.certify({ name: machine.name, hosts: machine.addresses, ...day }))
      open ??= server.createConnectionInjector(ServerCredentials.createSsl(null, [pairOf(pair)], false))
    }
  }

  const clock = { now: () => site.schedule.now(), after: (ms: number, run: () => void) => void site.schedule.after(ms, run) }
  const lineAt = (host: string): { readonly line: Line; state: LineState } => {
    const found = lines.get(host)
    if (found) return found
    const way = (direction: 'inward' | 'outward') =>
      slowly(() => {
        const { slowMs, bytesPerSecond } = site.faults.of(machine)
        // An answer is late once, not its question, too.
        return { delayMs: direction === 'outward' ? slowMs : 0, bytesPerSecond }
      }, clock)
    const accept: Parameters<typeof createLine>[1] = connection => {
      const injector = isInMaintenance(machine) || !strict ? open : strict
      if (injector) injector.injectConnection(connection)
      else connection.destroy()
    }
    const made = { line: createLine({ host, port }, accept, way), state: 'closed' as LineState }
    lines.set(host, made)
    return made
  }

  let wasOpen = false
  const hangUp = (): void => {
    for (const { line } of lines.values()) line.hangUp()
  }
  const ended = (): void => {
    // Also told when a cut has lasted long; on the wire it is the client who finds out.
    if (machine.apid) return
    hangUp()
    look().catch(onError)
  }
  const look = async (): Promise<void> => {
    if (isClosed) return
    // The set is emptied when apid stops, so this has to be said anew for each life.
    if (machine.apid) machine.streams.add(ended)
    // Other rules, and another certificate: whoever is connected has to come again. The server of maintenance answers first what it was asked.
    if (wasOpen && !isInMaintenance(machine)) open?.drain(MAINTENANCE_ENDS_WITHIN_MS)
    wasOpen = isInMaintenance(machine)
    await certify()
    if (isClosed) return
    const state = stateOf(machine)
    const changes: Promise<void>[] = []
    const become = (one: { readonly line: Line; state: LineState }, next: LineState): void => {
      if (one.state === next) return
      one.state = next
      changes.push(one.line.become(next))
    }
    for (const host of machine.addresses) become(lineAt(host), state)
    for (const [host, one] of lines) {
      if (machine.addresses.includes(host)) continue
      if (one.state !== 'closed') one.line.hangUp()
      become(one, 'closed')
    }
    await Promise.all(changes)
  }
  return {
    look,
    close: async () => {
      isClosed = true
      machine.streams.delete(ended)
      await Promise.all([...lines.values()].map(({ line }) => line.close()))
      server.forceShutdown()
    },
  }
}
