// The invented cluster as somebody sees it who looks for faults: every look at it, while time passes only as the look needs.
import { examineCluster } from '../../src/engine/examine.ts'
import { clusterLooks } from '../../src/core/looks/cluster-looks.ts'
import type { ClusterSight } from '../../src/core/looks/cluster-sight.ts'
import { type Finding, lookAt } from '../../src/core/looks/look.ts'
import type { Talos } from '../../src/ports/talos.ts'
import { CLUSTER, createStory, NAMESPACE, type Process, type Story, type StoryOptions } from '../../src/storm/story.ts'
import { change, RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { openPorts } from '../../src/world/ports/open.ts'

export type Clinic = Story & {
  /** The controller at work. */
  readonly controller: Process
  /** What the clinic's own talosconfig names, and what names mean, instead of what the world says. */
  endpoints: readonly string[] | undefined
  resolved: Readonly<Record<string, readonly string[]>>
  /** What machines tell of themselves instead of the truth. */
  told: ((facts: object) => object) | undefined
  controllerNodes: readonly string[]
  readonly sight: () => Promise<ClusterSight>
  /** What one of the looks finds, `severity: message` each. */
  readonly finds: (look: string) => Promise<readonly string[]>
  readonly findings: (look: string) => Promise<readonly Finding[]>
  /** Every finding of every look that is not well. */
  readonly troubles: () => Promise<readonly string[]>
  /** Changes an object of the store as nobody would ask leave for. */
  readonly rewrite: (resource: string, name: string, edit: (object: any) => void) => void
}

export const openClinic = async (options: StoryOptions = {}): Promise<Clinic> => {
  const story = createStory(options)
  const controller = story.start()
  const { store, machines } = story.world
  await story.until(
    'the machines are known',
    () => store.list(ICHOR.machines).items.length === machines.filter(m => m.config !== '').length,
  )
  await story.pass(60_000)

  const sight = async (): Promise<ClusterSight> => {
    const ports = openPorts(story.world, { name: 'doctor' })
    const connections: typeof ports.connections = {
      ...ports.connections,
      talos: async cluster => {
        const talos = await ports.connections.talos(cluster)
        return talos.ok ? { ok: true, value: asToldHere(talos.value) } : talos
      },
    }
    let answer: Awaited<ReturnType<typeof examineCluster>> | undefined
    const examiner = { ...ports, connections, withinMs: 12_000, resolve: (name: string) => Promise.resolve(clinic.resolved[name] ?? []) }
    const { controllerNodes } = clinic
    void examineCluster(examiner, { namespace: NAMESPACE, name: CLUSTER }, { certificates: [], controllerNodes }).then(
      found => (answer = found),
    )
    await story.until('it was looked at', () => answer !== undefined)
    ports.kill()
    if (!answer?.ok) throw new Error(answer?.fault.message)
    return answer.value
  }
  const asToldHere = (talos: Talos): Talos => ({
    ...talos,
    endpoints: clinic.endpoints ?? talos.endpoints,
    machine: async address => {
      const facts = await talos.machine(address)
      return facts.ok && clinic.told ? { ok: true, value: clinic.told(facts.value) as typeof facts.value } : facts
    },
  })
  const all = async () => lookAt(clusterLooks, await sight())
  const findings = async (look: string): Promise<readonly Finding[]> => (await all()).find(one => one.look === look)?.findings ?? []
  const text = ({ severity, message }: Finding): string => `${severity}: ${message}`

  const clinic: Clinic = {
    ...story,
    controller,
    endpoints: undefined,
    resolved: {},
    told: undefined,
    controllerNodes: [],
    sight,
    findings,
    finds: async look => (await findings(look)).map(text),
    troubles: async () =>
      (await all()).flatMap(({ look, findings: found }) =>
        found.filter(({ severity }) => severity !== 'ok').map(one => `${look}: ${text(one)}`),
      ),
    rewrite: (resource, name, edit) => {
      const namespace = resource === RESOURCE.nodes ? '' : NAMESPACE
      const written = change(store, resource, namespace, name, object => {
        const copy = structuredClone(object)
        edit(copy)
        return copy
      })
      if (!written) throw new Error(`there is no ${resource} ${name}`)
    },
  }
  return clinic
}
