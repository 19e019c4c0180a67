import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import type { Check } from './health.ts'

export type Listen = { readonly host: string; readonly port: number }

export type StatusSource = {
  readonly registry: Registry
  readonly liveness: () => readonly Check[]
  readonly readiness: () => readonly Check[]
}

/** Where it listens, and how to end it. */
export type StatusServer = { readonly address: string; readonly close: () => Promise<void> }

/**
 * `/metrics` for Prometheus, `/healthz` and `/readyz` for probes, each check below them by its name. As Kubernetes' own answer: `?verbose` tells all checks, a red one
 * tells them anyway.
 */
export const serveStatus = async ({ host, port }: Listen, source: StatusSource): Promise<StatusServer> => {
  const server = createServer((request, response) => {
    answer(source, request, response).catch((error: unknown) =>
      send(response, 500, `${error instanceof Error ? error.message : String(error)}\n`),
    )
  })
  // A probe that does not come to its end must not hold a connection for ever.
  server.requestTimeout = 10_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const bound = server.address() as AddressInfo
  return {
    address: `http://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const answer = async (source: StatusSource, { method, url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> => {
  if (method !== 'GET' && method !== 'HEAD') return send(response, 405, 'only GET\n', { allow: 'GET, HEAD' })
  const { pathname, searchParams } = new URL(url, 'http://status')
  const [, first = '', name, ...rest] = pathname.split('/')
  if (pathname === '/metrics') return send(response, 200, await source.registry.metrics(), { 'content-type': source.registry.contentType })
  const checks = first === 'healthz' ? source.liveness() : first === 'readyz' ? source.readiness() : undefined
  const asked = name ? checks?.filter(check => check.name === name) : checks
  if (!asked || asked.length === 0 || rest.length > 0) return send(response, 404, 'there are /metrics, /healthz and /readyz\n')
  const isRed = asked.some(({ problem }) => problem !== undefined)
  if (!isRed && !searchParams.has('verbose')) return send(response, 200, 'ok')
  const lines = asked.map(check => (check.problem === undefined ? `[+]${check.name} ok` : `[-]${check.name} failed: ${check.problem}`))
  send(response, isRed ? 503 : 200, `${[...lines, `${first} check ${isRed ? 'failed' : 'passed'}`].join('\n')}\n`)
}

const send = (response: ServerResponse, code: number, body: string, headers: Readonly<Record<string, string>> = {}): void => {
  response.writeHead(code, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...headers }).end(body)
}
