import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { fakeClock, realClock } from '../../../test/kube/clocks.ts'
import { type Answering, json, type ScriptedServer, startScripted, status } from '../../../test/kube/scripted-server.ts'
import type { Clock } from '../../ports/clock.ts'
import { createKubernetesCa, createKubernetesClient, createKubernetesServer, validFor, type CertificateAndKey } from '../pki/talos-pki.ts'
import type { KubeConfig } from './kubeconfig.ts'
import { type Call, openTransport, type RequestRecord, type Transport, type TransportOptions } from './transport.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
const folder = mkdtempSync(join(tmpdir(), 'ichor-transport-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const write = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

const start = async (...args: Parameters<typeof startScripted>): Promise<ScriptedServer> => {
  const server = await startScripted(...args)
  closing.push(server.stop)
  return server
}
const open = (config: KubeConfig, more: Partial<TransportOptions> = {}): Transport => {
  const transport = openTransport({ config, clock: realClock, userAgent: 'ichor/1.2.3', ...more })
  closing.push(transport.close)
  return transport
}
const get: Call = { verb: 'get', method: 'GET', path: '/api/v1/nodes/n', resource: 'nodes', what: 'nodes n' }
const put: Call = { verb: 'update', method: 'PUT', path: '/api/v1/nodes/n', resource: 'nodes', what: 'nodes n', body: { a: 'ü' } }
const fine: Answering = (asked, response) => json(response, { asked: asked.body ?? null })
const silent: Answering = () => {}

describe('a call', () => {
  it('goes out as JSON and comes back as JSON, and is counted', async () => {
    const records: RequestRecord[] = []
    const server = await start(fine)
    const transport = open(server.config({ token: 'abc' }), { onRequest: one => records.push(one) })
    expect(await transport.send({ ...put, contentType: 'application/merge-patch+json' })).toEqual({
      ok: true,
      value: { asked: { a: 'ü' } },
    })
    expect(server.asked[0]?.headers).toMatchObject({
      'content-type': 'application/merge-patch+json',
      accept: 'application/json',
      authorization: 'Bearer abc',
      'user-agent': 'ichor/1.2.3',
    })
    expect(records).toEqual([{ verb: 'update', resource: 'nodes', code: 200, ms: expect.any(Number) }])
  })

  it('tells how far the clock of the server is ahead, by the Date of its answer', async () => {
    const now = Date.parse('2026-09-01T08:00:00Z')
    const dated = (date: string) => start((_, response) => json(response.setHeader('date', date), {}))
    const ask = async (date: string) => open((await dated(date)).config(), { clock: { ...realClock, now: () => now } }).clockAhead()
    expect(await ask('Tue, 01 Sep 2026 08:02:00 GMT')).toEqual({ ok: true, value: 120_500 })
    expect(await ask('Tue, 01 Sep 2026 07:00:00 GMT')).toEqual({ ok: true, value: -3_599_500 })
    expect(await ask('yesterday')).toMatchObject({ ok: false, fault: { kind: 'unknown', message: expect.stringContaining('no Date') } })
    const refusing = await start((_, response) => status(response, 401, 'Unauthorized', 'who are you'))
    expect(await open(refusing.config()).clockAhead()).toMatchObject({ ok: false, fault: { kind: 'unauthenticated' } })
  })

  it('keeps to the path of the server', async () => {
    const server = await start(fine)
    await open({ ...server.config(), server: `${server.url}/k8s/clusters/c-1` }).send(get)
    expect(server.asked[0]?.url.pathname).toBe('/k8s/clusters/c-1/api/v1/nodes/n')
  })

  it('uses one connection for many', async () => {
    const server = await start(fine)
    const transport = open(server.config())
    for (let i = 0; i < 20; i++) await transport.send(get)
    expect(server.connections()).toBe(1)
  })

  it('opens no more connections than allowed, however many calls there are', async () => {
    const server = await start(fine)
    const transport = open(server.config(), { maxSockets: 3 })
    const answers = await Promise.all(Array.from({ length: 30 }, () => transport.send(get)))
    expect(answers.every(({ ok }) => ok)).toBe(true)
    expect(server.connections()).toBeLessThanOrEqual(3)
  })

  it('that reads is made again when the kept connection was just closed, and one that writes is not', async () => {
    let cutNext = false
    const server = await start((asked, response) => {
      if (!cutNext) return fine(asked, response)
      cutNext = false
      response.socket?.resetAndDestroy()
    })
    const transport = open(server.config())
    await transport.send(get)
    cutNext = true
    expect(await transport.send(get)).toMatchObject({ ok: true })
    cutNext = true
    expect(await transport.send(put)).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
    expect(server.asked).toHaveLength(4)
  })

  it('ends at its deadline, and the connection with it', async () => {
    const clock = fakeClock()
    const records: RequestRecord[] = []
    const server = await start(silent)
    const answer = open(server.config(), { clock, onRequest: one => records.push(one) }).send({ ...get, deadlineMs: 3000 })
    await vi.waitFor(() => expect(server.asked).toHaveLength(1))
    clock.advance(3000)
    expect(await answer).toMatchObject({
      ok: false,
      fault: { kind: 'unreachable', message: `${server.peer}: get nodes n: no answer within 3 s; whether the call took effect is unknown` },
    })
    expect(records).toMatchObject([{ code: 0, ms: 3000 }])
    expect(clock.waits()).toEqual([])
  })

  it('ends at its deadline also when the answer stops in its middle', async () => {
    const clock = fakeClock()
    const server = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{"half":')
    })
    const answer = open(server.config(), { clock }).send(get)
    await vi.waitFor(() => expect(server.asked).toHaveLength(1))
    clock.advance(15_000)
    expect(await answer).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })

  it('ends when it is cancelled, before or during', async () => {
    const server = await start(silent)
    const transport = open(server.config())
    const during = new AbortController()
    const answer = transport.send({ ...get, signal: during.signal })
    await vi.waitFor(() => expect(server.asked).toHaveLength(1))
    during.abort()
    expect(await answer).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
    expect(await transport.send({ ...get, signal: AbortSignal.abort() })).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
    expect(server.asked).toHaveLength(1)
  })

  it('of a closed transport is cancelled', async () => {
    const server = await start(fine)
    const transport = open(server.config())
    transport.close()
    expect(await transport.send(get)).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
  })

  it('finds nobody: which host and port', async () => {
    const server = await start(fine)
    await server.stop()
    expect(await open(server.config()).send(get)).toMatchObject({
      ok: false,
      fault: { kind: 'unreachable', message: expect.stringContaining(`${server.peer}: get nodes n: connection refused`) },
    })
  })

  it('finds something that is no API server', async () => {
    const server = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('<html>')
    })
    expect(await open(server.config()).send(get)).toMatchObject({
      ok: false,
      fault: { kind: 'unknown', message: expect.stringContaining('must be that of a Kubernetes API server') },
    })
  })

  it('never shows the token, even if the server says it back', async () => {
    const server = await start((asked, response) =>
      status(response, 403, 'Forbidden', `I do not like ${asked.headers.authorization} nor hush-token`),
    )
    const answer = await open(server.config({ token: 'hush-token' })).send(get)
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'forbidden' } })
    expect(JSON.stringify(answer)).not.toContain('hush-token')
  })

  it('goes through the proxy of the kubeconfig', async () => {
    const server = await start(fine, await serverTls())
    const through: string[] = []
    const proxy = createServer().on('connect', (request, socket, head) => {
      through.push(request.url ?? '')
      const onward = connectSocket(Number(server.peer.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        onward.write(head)
        onward.pipe(socket).pipe(onward)
      })
      for (const end of [onward, socket]) end.on('error', () => {})
    })
    await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
    closing.push(() => proxy.close())
    const { port } = proxy.address() as { port: number }
    const answer = await open(
      server.config({}, { 'proxy-url': `http://127.0.0.1:${port}`, 'certificate-authority-data': base64(ca.crt) }),
    ).send(get)
    expect(answer).toMatchObject({ ok: true })
    expect(through).toEqual([server.peer])
  })
})

describe('a refusal that says when to come back', () => {
  // The words of a real kube-apiserver in its first seconds (notfoundhandler of k8s.io/apiserver).
  const starting = 'the request has been made before all known HTTP paths have been installed, please try again'
  const notYet = (times: number): Answering => {
    let left = times
    return (asked, response) =>
      left-- > 0 ? status(response, 503, 'ServiceUnavailable', starting, { retryAfterSeconds: 5 }) : fine(asked, response)
  }

  it('is waited for by who has patience, also to write', async () => {
    const clock = fakeClock()
    const server = await start(notYet(2))
    const answer = open(server.config(), { clock, patienceMs: 12_000 }).send(put)
    for (const times of [1, 2]) {
      await vi.waitFor(() => expect(server.asked).toHaveLength(times))
      await vi.waitFor(() => expect(clock.waits()).toEqual([5000]))
      clock.advance(5000)
    }
    expect(await answer).toEqual({ ok: true, value: { asked: { a: 'ü' } } })
    expect(server.asked).toHaveLength(3)
  })

  it('is told once patience would end before that', async () => {
    const clock = fakeClock()
    const server = await start(notYet(3))
    const answer = open(server.config(), { clock, patienceMs: 6000 }).send(get)
    await vi.waitFor(() => expect(clock.waits()).toEqual([5000]))
    clock.advance(5000)
    expect(await answer).toMatchObject({ ok: false, fault: { kind: 'busy', retryAfterMs: 5000, sentence: starting } })
    expect(server.asked).toHaveLength(2)
  })

  it('is told at once to who has a queue of their own, and to who takes the call back', async () => {
    const server = await start(notYet(3))
    expect(await open(server.config()).send(get)).toMatchObject({ ok: false, fault: { retryAfterMs: 5000 } })
    const clock = fakeClock()
    const stop = new AbortController()
    const answer = open(server.config(), { clock, patienceMs: 60_000 }).send({ ...get, signal: stop.signal })
    await vi.waitFor(() => expect(clock.waits()).toEqual([5000]))
    stop.abort()
    expect(await answer).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
    expect(server.asked).toHaveLength(2)
    expect(clock.waits()).toEqual([])
  })
})

describe('a stream', () => {
  const watch: Call = { ...get, verb: 'watch' }

  it('gives line by line, whatever the chunks, and ends when the server ends it', async () => {
    const server = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const bytes = Buffer.from('{"a":"ü"}\n{"b":1}\n{"c":2}')
      // In the middle of the two bytes of ü.
      response.write(bytes.subarray(0, 7))
      setImmediate(() => response.end(bytes.subarray(7)))
    })
    const heard: string[] = []
    expect(await open(server.config()).stream(watch, { opened: () => heard.push('open'), line: line => heard.push(line) })).toEqual({
      ok: true,
      value: undefined,
    })
    expect(heard).toEqual(['open', '{"a":"ü"}', '{"b":1}', '{"c":2}'])
  })

  it('has a deadline for its head only', async () => {
    const clock = fakeClock()
    const server = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.flushHeaders()
    })
    let isOpen = false
    const stop = new AbortController()
    const end = open(server.config(), { clock }).stream(
      { ...watch, signal: stop.signal },
      { opened: () => (isOpen = true), line: () => {} },
    )
    await vi.waitFor(() => expect(isOpen).toBe(true))
    expect(clock.waits()).toEqual([])
    stop.abort()
    expect(await end).toMatchObject({ ok: false, fault: { kind: 'cancelled' } })
  })

  it('that is cut is unreachable', async () => {
    const server = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{"a":1}\n')
    })
    const end = open(server.config()).stream(watch, { opened: () => {}, line: () => server.cut() })
    expect(await end).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })

  it('that is refused says why', async () => {
    const server = await start((_, response) => status(response, 410, 'Expired', 'too old resource version'))
    expect(await open(server.config()).stream(watch, { opened: () => {}, line: () => {} })).toMatchObject({
      ok: false,
      fault: { code: 410 },
    })
  })
})

let ca: CertificateAndKey
let otherCa: CertificateAndKey
const from = new Date()
beforeAll(async () => {
  ca = await createKubernetesCa({ from })
  otherCa = await createKubernetesCa({ from })
})
const base64 = (pem: string): string => Buffer.from(pem).toString('base64')
const serverTls = async (hosts = ['127.0.0.1'], hours = 1, clientCa?: string) => {
  const { crt, key } = await createKubernetesServer({ ca, commonName: 'kube-apiserver', hosts, validity: validFor(from, hours) })
  return { cert: crt, key, ...(clientCa === undefined ? {} : { ca: clientCa }) }
}
const client = async () => {
  const { crt, key } = await createKubernetesClient({ ca, user: 'admin', groups: ['system:masters'], validity: validFor(from, 1) })
  return { 'client-certificate-data': base64(crt), 'client-key-data': base64(key) }
}

describe('TLS', () => {
  it('shows the client certificate and keeps the connection', async () => {
    const server = await start(fine, await serverTls(['127.0.0.1'], 1, ca.crt))
    const transport = open(server.config(await client(), { 'certificate-authority-data': base64(ca.crt) }))
    for (let i = 0; i < 10; i++) expect(await transport.send(get)).toMatchObject({ ok: true })
    expect(server.connections()).toBe(1)
  })

  it.each<[string, { hosts?: string[]; hours?: number; trusted?: () => CertificateAndKey }, string]>([
    ['from another CA', { trusted: () => otherCa }, 'certificate-authority-data must hold the CA'],
    ['expired', { hours: -1 }, 'has expired; it must be renewed'],
    ['for another host', { hosts: ['10.9.9.9'] }, 'must name the host that we call'],
  ])('refuses a server certificate %s as the wrong peer', async (_, { hosts, hours, trusted }, words) => {
    const server = await start(fine, await serverTls(hosts, hours))
    const answer = await open(server.config({}, { 'certificate-authority-data': base64((trusted?.() ?? ca).crt) })).send(get)
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'wrongPeer', message: expect.stringContaining(words) } })
    expect(server.asked).toEqual([])
  })

  it('takes tls-server-name and insecure-skip-tls-verify at their word', async () => {
    const named = await start(fine, await serverTls(['kube.example']))
    expect(
      await open(named.config({}, { 'certificate-authority-data': base64(ca.crt), 'tls-server-name': 'kube.example' })).send(get),
    ).toMatchObject({ ok: true })
    expect(await open(named.config({}, { 'insecure-skip-tls-verify': true })).send(get)).toMatchObject({ ok: true })
  })

  it('says when the server speaks plain HTTP, and when our own key is no key', async () => {
    const plain = await start(fine)
    expect(await open({ ...plain.config(), server: plain.url.replace('http:', 'https:') }).send(get)).toMatchObject({
      ok: false,
      fault: { kind: 'wrongPeer', message: expect.stringContaining('does not speak TLS') },
    })
    const server = await start(fine, await serverTls())
    const broken = { ...(await client()), 'client-key-data': base64('no key') }
    expect(await open(server.config(broken, { 'certificate-authority-data': base64(ca.crt) })).send(get)).toMatchObject({
      ok: false,
      fault: { kind: 'invalid', message: expect.stringContaining('must be PEM') },
    })
  })

  it('takes a new CA from its file, and keeps its connections while the file says the same', async () => {
    const clock = withHand()
    const server = await start(fine, await serverTls())
    const caFile = write('ca.crt', ca.crt)
    const transport = open(server.config({}, { 'certificate-authority': caFile }), { clock })
    await transport.send(get)
    clock.later(20_000)
    await transport.send(get)
    expect(server.connections()).toBe(1)
    write('ca.crt', otherCa.crt)
    clock.later(20_000)
    expect(await transport.send(get)).toMatchObject({ ok: false, fault: { kind: 'wrongPeer' } })
    // A refusal is not kept: the next call reads the files anew.
    write('ca.crt', ca.crt + otherCa.crt)
    expect(await transport.send(get)).toMatchObject({ ok: true })
  })
})

/** Real timers, and a monotonic clock that can be put forward. */
const withHand = (): Clock & { later: (ms: number) => void } => {
  let ahead = 0
  return { ...realClock, monotonic: () => realClock.monotonic() + ahead, later: ms => (ahead += ms) }
}

describe('credentials', () => {
  it('of a token file are read again as it changes, and at once after a 401', async () => {
    const clock = withHand()
    let accepted = 'Bearer one'
    const server = await start((asked, response) =>
      asked.headers.authorization === accepted ? fine(asked, response) : status(response, 401, 'Unauthorized', 'Unauthorized'),
    )
    const transport = open(server.config({ tokenFile: write('token', 'one\n') }), { clock })
    expect(await transport.send(get)).toMatchObject({ ok: true })
    write('token', 'two')
    accepted = 'Bearer two'
    expect(await transport.send(get)).toMatchObject({ ok: false, fault: { kind: 'unauthenticated' } })
    expect(await transport.send(get)).toMatchObject({ ok: true })
    write('token', 'three')
    accepted = 'Bearer three'
    clock.later(11_000)
    expect(await transport.send(get)).toMatchObject({ ok: true })
    expect(server.connections()).toBe(1)
  })

  it('that cannot be read are a fault that names the file', async () => {
    const server = await start(fine)
    expect(await open(server.config({ tokenFile: '/absent/token' })).send(get)).toMatchObject({
      ok: false,
      fault: { kind: 'unauthenticated', message: expect.stringContaining('/absent/token (ENOENT)') },
    })
  })

  it('may be a name and a password, and impersonation', async () => {
    const server = await start(fine)
    await open(server.config({ username: 'u', password: 'p', as: 'jane', 'as-groups': ['a', 'b'] })).send(get)
    expect(server.asked[0]?.headers).toMatchObject({ authorization: 'Basic dTpw', 'impersonate-user': 'jane', 'impersonate-group': 'a, b' })
  })

  const command = (script: string): string => {
    const path = write(`plugin-${Math.random()}`, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
    return path
  }
  const exec = (path: string) => ({
    exec: { apiVersion: 'client.authentication.k8s.io/v1', command: path, interactiveMode: 'Never', provideClusterInfo: true },
  })

  it('of a command are asked for once, and again after a 401', async () => {
    const runs = write('runs', '')
    const path = command(
      `echo "$KUBERNETES_EXEC_INFO" >> ${runs}; n=$(wc -l < ${runs}); echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"run-'$n'"}}'`,
    )
    let accepted = 'Bearer run-1'
    const server = await start((asked, response) =>
      asked.headers.authorization === accepted ? fine(asked, response) : status(response, 401, 'Unauthorized', 'Unauthorized'),
    )
    const transport = open(server.config(exec(path)))
    for (let i = 0; i < 3; i++) expect(await transport.send(get)).toMatchObject({ ok: true })
    accepted = 'Bearer run-2'
    expect(await transport.send(get)).toMatchObject({ ok: false, fault: { kind: 'unauthenticated' } })
    expect(await transport.send(get)).toMatchObject({ ok: true })
    expect(server.connections()).toBe(1)
  })

  it('of a command that fails say what it said', async () => {
    const server = await start(fine)
    const answer = await open(server.config(exec(command('echo "please log in" >&2; exit 3')))).send(get)
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'unauthenticated', message: expect.stringContaining('please log in') } })
    expect(await open(server.config(exec('/absent/command'))).send(get)).toMatchObject({
      ok: false,
      fault: { kind: 'unauthenticated', message: expect.stringContaining('/absent/command') },
    })
  })

  it('of a command that hangs end at the deadline', async () => {
    const clock = fakeClock()
    const server = await start(fine)
    const answer = open(server.config(exec(command('exec sleep 5'))), { clock }).send(get)
    clock.advance(15_000)
    expect(await answer).toMatchObject({ ok: false, fault: { kind: 'unreachable' } })
  })

  it('of an OIDC provider are its token while that is valid', async () => {
    const part = (of: object) => Buffer.from(JSON.stringify(of)).toString('base64url')
    const token = `${part({ alg: 'none' })}.${part({ exp: Date.now() / 1000 + 3600 })}.c2lnbmF0dXJl`
    const server = await start(fine)
    await open(server.config({ 'auth-provider': { name: 'oidc', config: { 'id-token': token } } })).send(get)
    expect(server.asked[0]?.headers.authorization).toBe(`Bearer ${token}`)
  })

  it('of a provider without a token say that one has to log in', async () => {
    const server = await start(fine)
    const answer = await open(server.config({ 'auth-provider': { name: 'oidc', config: {} } })).send(get)
    expect(answer).toMatchObject({ ok: false, fault: { kind: 'unauthenticated', message: expect.stringContaining('logging in again') } })
  })
})
