import { parseVersion } from '../versions.ts'
import { judgedCertificates, endOf } from './certificates.ts'
import { judged, serverTime } from './clock.ts'
import type { InstallationSight } from './installation-sight.ts'
import { isSilent } from './unasked.ts'
import { fine, type Look, orFine, wrong } from './look.ts'

/** ValidatingAdmissionPolicy is stable since then. */
export const POLICIES_SINCE = 30

/** Whether the API server answers, and is new enough. */
export const apiServer: Look<InstallationSight> = {
  name: 'API server',
  look: ({ server, version }) => {
    if (!version.ok)
      return [
        isSilent(version.fault)
          ? wrong(`${server} does not answer: ${version.fault.message}`, {
              remedy: 'Is it running, and is it the right one? --context and --kubeconfig choose another.',
            })
          : wrong(`${server} answers, but not to you: ${version.fault.message}`, {
              remedy:
                version.fault.kind === 'unauthenticated'
                  ? 'Log in anew, or choose another credential with --context or --kubeconfig.'
                  : 'Is it the right one? --context and --kubeconfig choose another.',
            }),
      ]
    const parsed = parseVersion(version.value)
    if (parsed && parsed.minor < POLICIES_SINCE)
      return [
        wrong(`${server} runs Kubernetes ${version.value}: admission policies need 1.${POLICIES_SINCE}.`, {
          remedy: 'Until it is upgraded, Ichor refuses what can take a cluster down.',
        }),
      ]
    return [fine(`${server}, Kubernetes ${version.value}.`)]
  },
}

export const ownClock: Look<InstallationSight> = {
  name: 'clocks',
  look: ({ serverClock }) => judged(serverTime(serverClock), serverClock.ok ? undefined : serverClock.fault),
}

export const ownCertificates: Look<InstallationSight> = {
  name: 'certificates',
  look: ({ certificates, now }) => orFine(judgedCertificates(certificates, now), endOf(certificates, now)),
}
