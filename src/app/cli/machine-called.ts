import type { TalosMachine } from '../../api/talos-machine.ts'
import { hostsCalled } from '../../core/machine-name.ts'
import type { KubeObject } from './api.ts'
import { MACHINE } from './resource-types.ts'
import type { Session } from './session.ts'
import { must, notThere } from './session.ts'
import { named, Stop } from './stop.ts'

const clusterOf = ({ spec }: KubeObject): string => (spec as Partial<TalosMachine['spec']> | undefined)?.clusterRef?.name ?? ''

/** Those of the name, or else those whose host or Node is called so. */
const allCalled = (machines: readonly KubeObject[], text: string): readonly KubeObject[] => {
  const named = machines.filter(({ metadata }) => metadata.name === text)
  const hosts = hostsCalled(machines, ({ status }) => (status ?? {}) as Partial<TalosMachine['status']>, text)
  return [...new Set([...named, ...hosts])]
}

/** The machine of that name; else the only one whose host or Node is called so, because that is what people see. */
export const machineCalled = async (session: Session, text: string): Promise<KubeObject> => {
  const { api, namespace } = session
  const found = await api.get(MACHINE, namespace, text)
  if (found.ok || found.fault.kind !== 'notFound') return must(session, found, `read machine ${text}`)
  const all = await api.list(MACHINE, namespace)
  const [only, ...others] = allCalled(all.ok ? all.value : [], text)
  if (!only) throw await notThere(session, MACHINE, text)
  if (others.length > 0) throw ambiguous(text, [only, ...others])
  return only
}

/** Ends the command where the cluster has no such machine, or several. Who may not list machines leaves that to the controller. */
export const mustHaveMachine = async (session: Session, cluster: string, text: string): Promise<void> => {
  const all = await session.api.list(MACHINE, session.namespace)
  if (all.ok) await oneCalled(session, all.value, cluster, text)
}

export const isAnyCalled = async ({ api, namespace }: Session, cluster: string, text: string): Promise<boolean> => {
  const all = await api.list(MACHINE, namespace)
  return all.ok && allCalled(all.value, text).some(machine => clusterOf(machine) === cluster)
}

/** The names of the machines of a cluster that are called so, each of which has to be one. */
export const machinesCalled = async (session: Session, cluster: string, texts: readonly string[]): Promise<string[]> => {
  const all = must(session, await session.api.list(MACHINE, session.namespace), 'list machines')
  const found = await Promise.all(texts.map(text => oneCalled(session, all, cluster, text)))
  return [...new Set(found.map(({ metadata }) => metadata.name))]
}

const oneCalled = async (session: Session, all: readonly KubeObject[], cluster: string, text: string): Promise<KubeObject> => {
  const here = allCalled(
    all.filter(machine => clusterOf(machine) === cluster),
    text,
  )
  const exact = here.find(({ metadata }) => metadata.name === text)
  if (!exact && here.length > 1) throw ambiguous(text, here)
  const found = exact ?? here[0]
  if (found) return found
  const elsewhere = [...new Set(allCalled(all, text).map(clusterOf))]
  if (elsewhere.length === 0) throw await notThere(session, MACHINE, text)
  throw new Stop('error', `machine ${text} is not of cluster ${cluster}, but of ${named(elsewhere)}`, [
    `Say which cluster with --cluster ${elsewhere[0]}`,
  ])
}

const ambiguous = (text: string, machines: readonly KubeObject[]): Stop => {
  const isOfOne = new Set(machines.map(clusterOf)).size === 1
  const names = machines.map(one => (isOfOne ? one.metadata.name : `${one.metadata.name} (cluster ${clusterOf(one)})`))
  return new Stop('error', `${machines.length} machines are called ${text}: say which`, [`There are: ${named(names)}`])
}
