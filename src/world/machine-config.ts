/**
 * The machine configuration as text: small, but real v1alpha1, spelled as talosctl spells it. The world reads and writes single scalars by their path and leaves every other
 * line as it is; it needs no YAML reader, and a text that a client wrote back keeps its comments.
 */
export const renderConfig = (facts: {
  readonly role: 'controlplane' | 'worker'
  readonly clusterID: string
  readonly clusterName: string
  readonly endpoint: string
  readonly installImage: string
  readonly kubernetes: string
  readonly etcdQuotaBytes: number | undefined
  /** Talos' own network; where it is not, another one is brought by somebody else. */
  readonly flannel: boolean
  readonly kubeProxy: boolean
}): string => {
  const lines = [
    'version: v1alpha1',
    'debug: false',
    'persist: true',
    'machine:',
    `    type: ${facts.role}`,
    '    token: ""',
    '    certSANs: []',
    '    kubelet:',
    `        image: ghcr.io/siderolabs/kubelet:${facts.kubernetes}`,
    '    install:',
    '        disk: /dev/sda',
    `        image: ${facts.installImage}`,
    '        wipe: false',
    'cluster:',
    `    id: ${facts.clusterID}`,
    '    controlPlane:',
    `        endpoint: ${facts.endpoint}`,
    `    clusterName: ${facts.clusterName}`,
  ]
  // Without a word of it Talos brings Flannel.
  if (!facts.flannel) lines.push('    network:', '        cni:', '            name: none')
  const program = (section: string, name: string): string[] => [
    `    ${section}:`,
    `        image: registry.k8s.io/${name}:${facts.kubernetes}`,
  ]
  if (facts.role === 'controlplane')
    lines.push(
      ...program('apiServer', 'kube-apiserver'),
      ...program('controllerManager', 'kube-controller-manager'),
      ...(facts.kubeProxy ? program('proxy', 'kube-proxy') : ['    proxy:', '        disabled: true']),
      ...program('scheduler', 'kube-scheduler'),
    )
  if (facts.role === 'controlplane' && facts.etcdQuotaBytes !== undefined)
    lines.push('    etcd:', '        extraArgs:', `            quota-backend-bytes: "${facts.etcdQuotaBytes}"`)
  return `${lines.join('\n')}\n`
}

const indent = (line: string): number => line.length - line.trimStart().length

/** The line of a path of mapping keys in the first document, or -1. */
export const lineOf = (lines: readonly string[], path: readonly string[]): number => {
  let depth = 0
  let below = -1
  for (const [at, line] of lines.entries()) {
    if (line === '---' && at > 0) return -1
    if (line.trim() === '' || line.trimStart().startsWith('#') || line === '---') continue
    const own = indent(line)
    if (depth > 0 && own <= below) return -1
    const expected = path[depth]
    if (expected === undefined) return -1
    if (!line.trimStart().startsWith(`${expected}:`)) continue
    // A key of the same name deeper inside a sibling is not ours.
    if (
      depth === 0
        ? own !== 0
        : !lines
            .slice(0, at)
            .findLast(l => l.trim() !== '' && indent(l) < own)
            ?.trimStart()
            .startsWith(`${path[depth - 1]}:`)
    )
      continue
    depth++
    below = own
    if (depth === path.length) return at
  }
  return -1
}

/** What was read out of the texts of late: machines are asked often, and their configuration hardly ever changes. */
const known = new Map<string, WeakMap<readonly string[], string | undefined>>()
const TEXTS_KEPT = 64

/** A scalar, without quotes and without a comment; undefined where the path is not there. */
export const readScalar = (text: string, path: readonly string[]): string | undefined => {
  let read = known.get(text)
  if (!read) {
    if (known.size === TEXTS_KEPT) known.clear()
    known.set(text, (read = new WeakMap<readonly string[], string | undefined>()))
  }
  if (!read.has(path)) read.set(path, scalarIn(text, path))
  return read.get(path)
}

const scalarIn = (text: string, path: readonly string[]): string | undefined => {
  const lines = text.split('\n')
  const line = lines[lineOf(lines, path)]
  if (line === undefined) return undefined
  const raw = line.slice(line.indexOf(':') + 1).trim()
  return (
    /^"([^"]*)"|^'([^']*)'/
      .exec(raw)
      ?.slice(1)
      .find(part => part !== undefined) ?? raw.replace(/\s+#.*$/, '')
  )
}

/** The text with one scalar changed; unchanged where the path is not there. */
export const writeScalar = (text: string, path: readonly string[], value: string): string => {
  const lines = text.split('\n')
  const at = lineOf(lines, path)
  const line = lines[at]
  if (line === undefined) return text
  lines[at] = `${line.slice(0, line.indexOf(':') + 1)} ${value}`
  return lines.join('\n')
}

/** The network that Talos brings: `flannel`, `none`, `custom`. */
export const CNI = ['cluster', 'network', 'cni', 'name'] as const

export const endpointOf = (text: string): string => readScalar(text, ['cluster', 'controlPlane', 'endpoint']) ?? ''

/** What a machine of that configuration is. `init` is an old word for a control plane. */
export const roleIn = (text: string): 'controlplane' | 'worker' =>
  ['controlplane', 'init'].includes(readScalar(text, ['machine', 'type']) ?? '') ? 'controlplane' : 'worker'

export const INSTALL_IMAGE = ['machine', 'install', 'image'] as const
export const ETCD_QUOTA = ['cluster', 'etcd', 'extraArgs', 'quota-backend-bytes'] as const

/** etcd's own default. */
export const DEFAULT_QUOTA_BYTES = 2 * 1024 ** 3

export const etcdQuotaOf = (text: string): number => {
  const quota = Number(readScalar(text, ETCD_QUOTA) ?? Number.NaN)
  return Number.isFinite(quota) && quota > 0 ? quota : DEFAULT_QUOTA_BYTES
}
