import type { Step } from '../../core/kind.ts'
import { YES, no, unknown } from '../../core/kind.ts'
import { CALL_MS, READY_MS, apiServer, nodeReady, rejoin, soak, uncordon } from '../../core/machine-steps/coming-back.ts'
import { addressOf, machineOf, replaced } from '../../core/machine-steps/target.ts'
import { displayName } from '../../core/world.ts'
import { peerOf, wrongBoot } from './evidence.ts'
import { gate, wish } from './view.ts'
import { reportsReady, whyNotReady } from '../../core/machine-steps/ready.ts'

const verify: Step = {
  name: 'verify',
  summary: 'The machine runs the version and schematic that were installed, and Talos reports it running and ready.',
  needs: view => {
    const peer = peerOf(view)
    return peer ? [{ what: 'machine', name: peer.name }] : []
  },
  done: view => {
    const facts = machineOf(view)
    if (!facts.ok) return replaced(view) ?? unknown(`it does not answer: ${facts.fault.message}`)
    const wrong = wrongBoot(view, facts.value)
    if (wrong) return wrong
    return reportsReady(facts.value)
  },
  deadlineMs: () => READY_MS,
  failure: whyNotReady,
}

const recordImage: Step = {
  name: 'record-image',
  summary: 'Writes the installed image into the machine configuration, without a reboot, so that a later reset does not go back.',
  done: view => {
    const facts = machineOf(view)
    if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
    // A configuration without an install image has none to keep true.
    return facts.value.installImage === '' || facts.value.installImage === wish(view, 'image')
      ? YES
      : no(`its configuration names ${facts.value.installImage}`)
  },
  act: {
    long: false,
    disruptive: false,
    describe: () => 'writing the image into its configuration',
    run: ({ talos }, view) => talos.setInstallImage(addressOf(view), wish(view, 'image')),
    fatal: (fault, view) =>
      fault.kind === 'invalid' ? { reason: 'ConfigRejected', message: `${displayName(view.target)}: ${fault.message}.` } : undefined,
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: () => CALL_MS,
  failure: 'ConfigRejected',
}

const settled = rejoin(({ operation, world }) => gate(operation, world, 'settled'))

export const afterRestart: readonly Step[] = [verify, nodeReady, apiServer, settled, uncordon, recordImage, soak]
