import { ConnectRecord_State as State, MachineService, NetstatRequest_Filter as Filter } from '../../../proto/gen/machine/machine_pb.ts'
import { answer } from '../../world/answer.ts'
import { answers, type Machine } from '../../world/machine.ts'
import type { Site } from '../../world/site.ts'
import { isServing } from '../../world/static-pods.ts'
import type { UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'
import type { Socket } from './programs.ts'
import { runningOn, type Process } from './running.ts'
import { share } from './steady.ts'

const methods = MachineService.method

type Record = {
  readonly protocol: Socket['protocol']
  readonly local: readonly [ip: string, port: number]
  readonly remote: readonly [ip: string, port: number]
  readonly state: State
  readonly process: Process
}

const waiting = (process: Process): readonly Record[] =>
  process.sockets.map(({ protocol, ip, port }) => ({
    ...{ protocol, local: [ip, port], remote: [ip.includes(':') ? '::' : '0.0.0.0', 0], process },
    state: protocol.startsWith('tcp') ? State.LISTEN : State.CLOSE,
  }))

const EPHEMERAL = { first: 32_768, count: 28_232 } as const

/** The port that a connection leaves from: the same whichever end is asked. */
const portOf = (...ends: readonly string[]): number => EPHEMERAL.first + Math.floor(share('port', ...ends) * EPHEMERAL.count)

/** Both ends of a connection, each with the machine that has it. */
type Connection = {
  readonly from: Machine
  readonly to: Machine
  readonly ip: readonly [from: string, to: string]
  readonly service: readonly [from: string, to: string]
  readonly port: number
}

const addressOf = (machine: Machine): string => machine.addresses[0] ?? ''

/** Who talks to whom in the cluster: etcd's members with each other, each API server with its etcd, each kubelet with an API server. */
const connectionsOf = (site: Site): readonly Connection[] => {
  const up = site.machines.filter(answers)
  const members = up.filter(machine => machine.services.get('etcd')?.state === 'Running')
  const servers = up.filter(isServing)
  const between = (from: Machine, to: Machine, service: readonly [string, string], port: number): Connection => ({
    ...{ from, to, service, port, ip: [addressOf(from), addressOf(to)] },
  })
  return [
    ...members.flatMap(from => members.filter(to => to !== from).map(to => between(from, to, ['etcd', 'etcd'], 2380))),
    ...servers
      .filter(machine => members.includes(machine))
      .map(machine => ({ ...between(machine, machine, ['kube-apiserver', 'etcd'], 2379), ip: ['127.0.0.1', '127.0.0.1'] as const })),
    ...up
      .filter(machine => machine.kubelet)
      .flatMap(from => {
        const to = servers.includes(from) ? from : servers[from.index % Math.max(1, servers.length)]
        return to ? [between(from, to, ['kubelet', 'kube-apiserver'], 6443)] : []
      }),
  ]
}

const connected = (site: Site, machine: Machine, processes: readonly Process[]): readonly Record[] => {
  const named = (name: string): Process | undefined => processes.find(process => process.name === name)
  return connectionsOf(site).flatMap(({ from, to, ip, service, port }) => {
    const source = portOf(from.bootID, to.bootID, ...service)
    const record = (at: 0 | 1): readonly Record[] => {
      const process = named(service[at])
      if (!process) return []
      const ends = [
        [ip[0], source],
        [ip[1], port],
      ] as const
      // Go's servers listen on both families at once, and their connections count as of the newer one.
      return [{ protocol: at === 0 ? 'tcp' : 'tcp6', local: ends[at], remote: ends[1 - at] ?? ends[0], state: State.ESTABLISHED, process }]
    }
    return [...(from === machine ? record(0) : []), ...(to === machine ? record(1) : [])]
  })
}

const ORDER: readonly Socket['protocol'][] = ['tcp', 'tcp6', 'udp', 'udp6']

const netstat: UnaryHandler<typeof methods.netstat> = ({ site, machine }, { filter, feature, l4proto, netns }) => {
  const { processes } = runningOn(site, machine)
  const isWanted = (process: Process): boolean =>
    process.network === '' ? netns?.hostnetwork === true : netns?.allnetns === true || netns?.netns.includes(process.network) === true
  const all = [...processes.flatMap(waiting), ...connected(site, machine, processes)]
  const records = all
    .filter(({ protocol, process, remote: [, port] }) => {
      if (l4proto?.[protocol] !== true || !isWanted(process)) return false
      return filter === Filter.ALL || (filter === Filter.LISTENING) === (port === 0)
    })
    .toSorted((a, b) => ORDER.indexOf(a.protocol) - ORDER.indexOf(b.protocol) || a.local[1] - b.local[1])
  const connectrecord = records.map(({ protocol, local, remote, state, process }) => ({
    ...{ l4proto: protocol, localip: local[0], localport: local[1], remoteip: remote[0], remoteport: remote[1], state },
    inode: BigInt(10_000 + Math.floor(share(process.pid, local[1], remote[1]) * 90_000)),
    process: feature?.pid === true ? { pid: process.pid, name: process.name } : {},
    netns: process.network,
  }))
  return answer({ messages: [{ connectrecord }] })
}

/** The sockets of what runs on a machine. Whoever calls the API itself is not among the connections: it comes from outside the world. */
export const netstatMethods = { netstat: unary(methods.netstat, netstat) }
