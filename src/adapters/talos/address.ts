import { isIP, isIPv4, isIPv6 } from 'node:net'

/** Where a machine listens. `host` is an IP address without brackets, or a name. */
export type MachineAddress = { readonly host: string; readonly port: number }

/** The port of the Talos API where an address names none. */
export const talosPort = 50_000

/** `host`, `host:port`, an IPv6 address bare or in brackets with or without a port; undefined where it is none of these. */
export function parseAddress(text: string): MachineAddress | undefined {
  if (isIP(text)) return { host: text, port: talosPort }
  const [, v6, name, port] = /^(?:\[([^\]]+)\]|([^\s:/[\]@?#]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = v6 ?? name
  const portNumber = port === undefined ? talosPort : Number(port)
  if (host === undefined || (v6 !== undefined && !isIPv6(v6)) || portNumber < 1 || portNumber > 65_535) return undefined
  return { host, port: portNumber }
}

/** The shortest form that `parseAddress` reads back: without the port where it is the usual one. */
export function formatAddress({ host, port }: MachineAddress): string {
  if (port === talosPort) return host
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}

/** As grpc-js wants it: an IP address is not to be looked up in DNS. */
export function grpcTarget({ host, port }: MachineAddress): string {
  if (isIPv4(host)) return `ipv4:${host}:${port}`
  return isIPv6(host) ? `ipv6:[${host}]:${port}` : `dns:///${host}:${port}`
}

/** Raw bytes of `common.NetIP` as text; undefined where they are no address. A zone after 16 bytes is dropped. */
export function textOfIP(bytes: Uint8Array): string | undefined {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length < 16) return undefined
  const groups = Array.from({ length: 8 }, (_, index) => ((bytes[index * 2]! << 8) | bytes[index * 2 + 1]!).toString(16))
  // A URL writes an IPv6 address in its one short form.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
