import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { releaseOf } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import { cgroupFiles, deviceNumber } from './cgroup-files.ts'
import { loadOf, memoryOn } from './counters.ts'
import { runningOn } from './running.ts'
import { snapshotFile } from './snapshot-file.ts'
import { mountsOf } from './system.ts'

/** A file's size is what the kernel tells of it, which is nothing below /proc. */
export type Entry =
  | { readonly kind: 'file'; readonly size: number; readonly content: () => Iterable<Buffer> }
  | { readonly kind: 'folder' }
  | { readonly kind: 'link'; readonly target: string }

/** By absolute path; every folder on the way is there too. */
export type FileTree = ReadonlyMap<string, Entry>

const text = (content: string): Entry => ({ kind: 'file', size: Buffer.byteLength(content), content: () => [Buffer.from(content)] })
/** Without a size, as the kernel's own files are. */
const told = (content: string): Entry => ({ kind: 'file', size: 0, content: () => [Buffer.from(content)] })

const BLOCK = 65_536
function* zeros(size: number): Generator<Buffer> {
  const empty = Buffer.alloc(BLOCK)
  for (let left = size; left > 0; left -= BLOCK) yield left < BLOCK ? empty.subarray(0, left) : empty
}
/** Something whose size counts, and nothing else. */
const filled = (size: number): Entry => ({ kind: 'file', size, content: () => zeros(size) })

const MiB = 1024 ** 2

const etcFiles = (site: Site, machine: Machine): Readonly<Record<string, Entry>> => {
  const version = versionOf(machine)
  return {
    '/etc/hostname': text(`${machine.hostname}\n`),
    '/etc/hosts': text(`127.0.0.1 localhost\n${machine.addresses[0] ?? '127.0.0.1'} ${machine.hostname}\n`),
    '/etc/os-release': text(`NAME="Talos"\nID=talos\nVERSION_ID=${version}\nPRETTY_NAME="Talos (${version})"\n`),
    '/etc/resolv.conf': text('nameserver 127.0.0.53\n\nsearch .\n'),
    ...(machine.kubelet
      ? { '/etc/kubernetes/kubelet.yaml': text('apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n') }
      : {}),
    ...(machine.config === '' ? {} : { '/system/state/config.yaml': text(machine.onDisk ?? machine.config) }),
  }
}

const procFiles = (site: Site, machine: Machine): Readonly<Record<string, Entry>> => {
  const uptime = (site.schedule.now() - machine.bootedAt) / 1000
  const load = loadOf(site, machine)
  const memory = memoryOn(site, machine)
  const kib = (name: string, value: number): string => `${`${name}:`.padEnd(16)}${String(Math.round(value)).padStart(8)} kB\n`
  const files: Record<string, Entry> = {
    '/proc/bus/pci/devices': told(PCI),
    '/proc/cmdline': told('init_on_alloc=1 slab_nomerge= pti=on consoleblank=0 talos.platform=metal\n'),
    '/proc/loadavg': told(`${load.toFixed(2)} ${(load * 0.97).toFixed(2)} ${(load * 0.95).toFixed(2)} 1/400 32768\n`),
    '/proc/meminfo': told(
      kib('MemTotal', memory.total) + kib('MemFree', memory.free) + kib('MemAvailable', memory.available) + kib('Cached', memory.cached),
    ),
    '/proc/mounts': told(
      mountsOf(machine)
        .map(({ filesystem, mountedOn }) => `${filesystem} ${mountedOn} ${filesystem.startsWith('/dev/') ? 'xfs' : filesystem} rw 0 0\n`)
        .join(''),
    ),
    '/proc/sys/kernel/hostname': told(`${machine.hostname}\n`),
    '/proc/sys/kernel/osrelease': told(`${releaseOf(versionOf(machine)).kernel}\n`),
    '/proc/sys/kernel/random/boot_id': told(`${machine.bootID}\n`),
    '/proc/uptime': told(`${uptime.toFixed(2)} ${(uptime * 3.7).toFixed(2)}\n`),
    '/proc/version': told(`Linux version ${releaseOf(versionOf(machine)).kernel} (simulated) #1 SMP\n`),
  }
  for (const { pid, executable, args } of runningOn(site, machine).processes) {
    files[`/proc/${pid}/comm`] = told(`${executable.slice(executable.lastIndexOf('/') + 1).slice(0, 15)}\n`)
    files[`/proc/${pid}/cmdline`] = told(`${args.replaceAll(' ', '\0')}\0`)
    files[`/proc/${pid}/exe`] = { kind: 'link', target: executable }
  }
  return files
}

/** A bridge, a network card and a disk controller, as virtual machines have them. */
const PCI = ['0000\t80861237\t0', '0018\t1af41000\tb', '0020\t1af41004\ta'].map(start => `${start}${'\t0'.repeat(14)}\n`).join('')

const sysFiles = (site: Site, machine: Machine): Readonly<Record<string, Entry>> => {
  const files: Record<string, Entry> = {}
  for (const { path } of machine.disks) {
    const name = path.slice('/dev/'.length)
    files[`/sys/dev/block/${deviceNumber(name)}`] = { kind: 'link', target: `../../devices/pci0000:00/0000:00:04.0/block/${name}` }
    files[`/dev/${name}`] = filled(0)
  }
  for (const [path, content] of cgroupFiles(site, machine, runningOn(site, machine).processes))
    files[`/sys/fs/cgroup/${path}`] = told(content)
  return files
}

const SEGMENT = 64_000_000

const varFiles = (site: Site, machine: Machine): Readonly<Record<string, Entry>> => {
  const files: Record<string, Entry> = {}
  const member = site.etcd.memberOf(machine)
  if (member && site.etcd.hasData(machine)) {
    const facts = { bytes: member.dbSize, revision: site.etcd.index(), term: site.etcd.term(), storageVersion: '' }
    // The file is the snapshot without the digest at its end.
    const size = Math.ceil(member.dbSize / 4096) * 4096
    files['/var/lib/etcd/member/snap/db'] = { kind: 'file', size, content: () => upTo(snapshotFile(facts), size) }
    files['/var/lib/etcd/member/wal/0000000000000000-0000000000000000.wal'] = filled(SEGMENT)
    files['/var/lib/etcd/member/wal/0.tmp'] = filled(SEGMENT)
  }
  for (const image of machine.images.keys()) {
    const digest = site.registry.pinned(image).split('@sha256:')[1] ?? ''
    files[`/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/${digest}`] = filled(128 * MiB)
  }
  for (const { name, uid, containers } of runningOn(site, machine).pods) {
    const [namespace = '', pod = ''] = name.split('/')
    for (const container of containers.filter(({ isSandbox }) => !isSandbox)) {
      files[`/var/log/pods/${namespace}_${pod}_${uid}/${container.name}/0.log`] = text('')
      files[`/var/lib/kubelet/pods/${uid}/containers/${container.name}/${container.id.slice(0, 8)}`] = text('')
    }
  }
  return files
}

function* upTo(chunks: Iterable<Buffer>, size: number): Generator<Buffer> {
  let left = size
  for (const chunk of chunks) {
    if (left <= 0) return
    yield chunk.subarray(0, left)
    left -= chunk.length
  }
}

const FOLDERS: readonly string[] = [
  '/boot',
  '/dev',
  '/etc',
  '/opt',
  '/proc',
  '/run',
  '/sys',
  '/system',
  '/tmp',
  '/usr',
  '/var',
  '/var/lib',
  '/var/log',
]

/** All files of a machine at this moment, in no order. */
export const filesOn = (site: Site, machine: Machine): FileTree => {
  const tree = new Map<string, Entry>([['/', { kind: 'folder' }]])
  const add = (path: string, entry: Entry): void => {
    for (let at = path.indexOf('/', 1); at > 0; at = path.indexOf('/', at + 1))
      if (!tree.has(path.slice(0, at))) tree.set(path.slice(0, at), { kind: 'folder' })
    tree.set(path, entry)
  }
  for (const path of FOLDERS) add(path, { kind: 'folder' })
  for (const files of [etcFiles, procFiles, sysFiles, varFiles])
    for (const [path, entry] of Object.entries(files(site, machine))) add(path, entry)
  return tree
}
