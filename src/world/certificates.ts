import type { Machine } from './machine.ts'
import { setServiceState, startService } from './services.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import type { Cancel } from './time.ts'
import { at, readYaml } from './yaml-tree.ts'

/** What a machine shows on the port of the Talos API. Times are milliseconds since 1970 by the clock of whoever signed it. */
export type ServerCertificate = {
  /** Grows with each one that the machine gets. */
  readonly serial: number
  readonly notBefore: number
  readonly notAfter: number
  /** Addresses and names that it is for. */
  readonly hosts: readonly string[]
  /** The machine whose authority signed it: its own, or for a worker that of some control plane. */
  readonly signer: string
}

const HOUR_MS = 3_600_000
/** Talos makes its own certificates for a day, and new ones at half of it. */
const VALID_MS = 24 * HOUR_MS
/** How long a worker waits before it asks again for a signature. */
const ASK_AGAIN_MS = 5000

/** What the clock of a machine shows, milliseconds since 1970. */
export const clockOf = (site: Site, machine: Machine): number => site.schedule.now() + site.faults.of(machine).clockOffsetMs

/** Who looks at a certificate finds it good at that time of their clock. */
export const isValidAt = ({ notBefore, notAfter }: Pick<ServerCertificate, 'notBefore' | 'notAfter'>, clock: number): boolean =>
  notBefore <= clock && clock <= notAfter

const hostsOf = (machine: Machine): readonly string[] => {
  const [document] = readYaml(machine.config)
  const named = at(document, 'machine', 'certSANs')
  const more = Array.isArray(named) ? named.filter(name => typeof name === 'string') : []
  return [...new Set([...machine.addresses, ...more, '127.0.0.1', machine.hostname])]
}

/** A control plane that would sign for this worker now. They have to take each other's certificates, too. */
const signerFor = (site: Site, worker: Machine): Machine | undefined =>
  worker.cut
    ? undefined
    : site.machines.find(
        m =>
          m.role === 'controlplane' &&
          m.powered &&
          !m.cut &&
          m.services.get('trustd')?.state === 'Running' &&
          m.certificate !== undefined &&
          isValidAt(m.certificate, clockOf(site, worker)),
      )

/** What is planned for the certificate that a machine has. */
const plans = new WeakMap<Machine, Cancel[]>()

const forgetPlans = (machine: Machine): void => {
  for (const cancel of plans.get(machine) ?? []) cancel()
  plans.delete(machine)
}

/** Looks again when time makes a difference to those who look at it. */
const watchValidity = (site: Site, machine: Machine, certificate: ServerCertificate): void => {
  forgetPlans(machine)
  const look = (what: string) => (): void => {
    if (machine.certificate !== certificate) return
    site.journal.write(machine.name, what)
    site.tell(machine, 'certificate')
  }
  const { schedule } = site
  plans.set(machine, [
    ...(certificate.notBefore > schedule.now() ? [schedule.at(certificate.notBefore, look('certificate-begins'))] : []),
    schedule.at(certificate.notAfter + 1, look('certificate-expired')),
  ])
}

/** Signs anew if somebody can. Answers whether the machine has a certificate at all. */
const issue = (site: Site, machine: Machine, since: number = clockOf(site, machine)): boolean => {
  const signer = machine.role === 'controlplane' ? machine : signerFor(site, machine)
  if (!signer) return machine.certificate !== undefined
  const notBefore = signer === machine ? since : since - clockOf(site, machine) + clockOf(site, signer)
  const serial = (machine.certificate?.serial ?? 0) + 1
  machine.certificate = { serial, notBefore, notAfter: notBefore + VALID_MS, hosts: hostsOf(machine), signer: signer.name }
  watchValidity(site, machine, machine.certificate)
  return true
}

/**
 * A new certificate: at half of the old one's life, when the clock jumped, when addresses or names changed. A worker needs a control plane's trustd for
 * it; while none answers it keeps what it has and asks again.
 */
export const renewCertificate = (site: Site, machine: Machine): void => {
  const before = machine.certificate
  if (machine.config === '' || !machine.apid || !before) return
  issue(site, machine)
  if (machine.certificate === before)
    return void later(site, machine, site.durations.fixed(ASK_AGAIN_MS), () => renewIfStill(site, machine, before))
  site.tell(machine, 'certificate')
  planRenewal(site, machine)
}

const renewIfStill = (site: Site, machine: Machine, certificate: ServerCertificate): void => {
  if (machine.certificate === certificate) renewCertificate(site, machine)
}

const planRenewal = (site: Site, machine: Machine, inMs = VALID_MS / 2): void => {
  const { certificate } = machine
  if (certificate) plans.get(machine)?.push(later(site, machine, inMs, () => renewIfStill(site, machine, certificate)))
}

/** Of a machine that has run for long: its last renewal was some time ago. */
export const haveCertificate = (site: Site, machine: Machine): void => {
  const age = (site.schedule.now() - machine.bootedAt) % (VALID_MS / 2)
  issue(site, machine, site.schedule.now() - age)
  planRenewal(site, machine, VALID_MS / 2 - age)
}

/** A machine boots: apid begins as soon as it has a certificate. One without a configuration makes its own. */
export const openApi = (site: Site, machine: Machine): void => {
  machine.certificate = undefined
  forgetPlans(machine)
  if (machine.config === '') {
    machine.apid = true
    return
  }
  const wait = (): void => {
    if (!issue(site, machine)) return void later(site, machine, site.durations.fixed(ASK_AGAIN_MS), wait)
    const isLate = machine.services.get('apid')?.state === 'Waiting'
    machine.apid = true
    planRenewal(site, machine)
    if (isLate) startService(site, machine, 'apid')
  }
  wait()
  if (!machine.apid) site.journal.write(machine.name, 'no-certificate', 'no control plane signs one')
}

/** What the service of apid says meanwhile. */
export const waitForCertificate = (site: Site, machine: Machine): void =>
  setServiceState(site, machine, 'apid', 'Waiting', 'Waiting for api certificates')

/** Out of maintenance: until somebody has signed, it shows what it showed there. */
const firstCertificate = (site: Site, machine: Machine): void => {
  if (!issue(site, machine)) return void later(site, machine, site.durations.fixed(ASK_AGAIN_MS), () => firstCertificate(site, machine))
  planRenewal(site, machine)
  site.tell(machine, 'certificate')
}

/** Certificates follow the configuration that names hosts, and the first one follows a machine out of maintenance. */
export const followCertificates = (site: Site): void => {
  site.listen((machine, change) => {
    if (change !== 'config' || !machine.apid || machine.config === '') return
    if (!machine.certificate) return firstCertificate(site, machine)
    if (hostsOf(machine).join() !== machine.certificate.hosts.join()) renewCertificate(site, machine)
  })
}
