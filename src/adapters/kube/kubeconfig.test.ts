import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadKubeConfig, type KubeConfigOptions } from './kubeconfig.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-kubeconfig-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const write = (name: string, content: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}
const config = (more: object = {}) => ({
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443/', 'certificate-authority': 'ca.crt' } }],
  users: [{ name: 'u', user: { tokenFile: 'token' } }],
  contexts: [
    { name: 'one', context: { cluster: 'c', user: 'u', namespace: 'ichor-system' } },
    { name: 'two', context: { cluster: 'c', user: 'u' } },
  ],
  'current-context': 'one',
  ...more,
})
const problem = async (options: KubeConfigOptions): Promise<string> => {
  const loaded = await loadKubeConfig({ env: { HOME: folder }, serviceAccountFolder: folder, ...options })
  if (loaded.ok) throw new Error('it was taken')
  return loaded.fault.message
}

describe('a kubeconfig', () => {
  it('gives the current context, its server and its namespace, with paths from its own folder', async () => {
    const loaded = await loadKubeConfig({ kubeconfigPath: write('plain', config()) })
    expect(loaded).toMatchObject({
      ok: true,
      value: {
        server: 'https://10.0.0.1:6443',
        namespace: 'ichor-system',
        context: 'one',
        cluster: { 'certificate-authority': join(folder, 'ca.crt') },
        user: { tokenFile: join(folder, 'token') },
      },
    })
  })

  it('gives another context when asked, in namespace default when it names none', async () => {
    expect(await loadKubeConfig({ kubeconfigPath: write('plain', config()), context: 'two' })).toMatchObject({
      ok: true,
      value: { context: 'two', namespace: 'default' },
    })
  })

  it('is merged of the files in KUBECONFIG: the first of a name wins, an absent file is passed over', async () => {
    const first = write('first', {
      contexts: [{ name: 'mine', context: { cluster: 'c', user: 'u', namespace: 'mine' } }],
      'current-context': 'mine',
      users: [{ name: 'u', user: { token: 'first' } }],
    })
    const env = { KUBECONFIG: [first, join(folder, 'absent'), write('second', config())].join(':') }
    expect(await loadKubeConfig({ env })).toMatchObject({
      ok: true,
      value: { context: 'mine', server: 'https://10.0.0.1:6443', user: { token: 'first' } },
    })
  })

  it('may be plain http, for test servers', async () => {
    expect(
      await loadKubeConfig({
        text: JSON.stringify(
          config({ clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:8080' } }], users: [{ name: 'u', user: {} }] }),
        ),
      }),
    ).toMatchObject({ ok: true })
  })
})

describe('a problem is one sentence that says what would be right', () => {
  it.each<[string, () => KubeConfigOptions, string]>([
    [
      'no such file',
      () => ({ kubeconfigPath: join(folder, 'absent') }),
      `kubeconfig not found: --kubeconfig names ${join(folder, 'absent')}`,
    ],
    ['no file of KUBECONFIG', () => ({ env: { KUBECONFIG: '/absent/a:/absent/b' } }), 'KUBECONFIG names /absent/a, /absent/b'],
    ['nothing configured', () => ({}), 'no cluster is configured: give --kubeconfig FILE, set KUBECONFIG'],
    ['not in a pod', () => ({ inCluster: true }), 'not in a pod'],
    [
      'no token in the pod',
      () => ({ inCluster: true, env: { KUBERNETES_SERVICE_HOST: '10.96.0.1' } }),
      'the pod has no ServiceAccount token',
    ],
    ['no such context', () => ({ text: JSON.stringify(config()), context: 'thre' }), 'has no context "thre"; it has one, two'],
    [
      'no current context',
      () => ({ text: JSON.stringify(config({ 'current-context': undefined })) }),
      'names no current-context; it has these contexts: one, two',
    ],
    ['no contexts', () => ({ text: 'kind: Config' }), 'has no contexts'],
    [
      'no such cluster',
      () => ({ text: JSON.stringify(config({ clusters: [] })) }),
      'names the cluster "c", which is not there; it has none',
    ],
    ['no such user', () => ({ text: JSON.stringify(config({ users: [] })) }), 'names the user "u", which is not there'],
    [
      'cluster without server',
      () => ({ text: JSON.stringify(config({ clusters: [{ name: 'c', cluster: {} }] })) }),
      'cluster c of the kubeconfig has no server',
    ],
    [
      'server that is no URL',
      () => ({ text: JSON.stringify(config({ clusters: [{ name: 'c', cluster: { server: '10.0.0.1:6443' } }] })) }),
      'it must be a URL',
    ],
    ['empty', () => ({ text: '' }), 'is empty; it must be a kubeconfig'],
    ['not YAML', () => ({ text: 'a: [\nb: }' }), 'is not YAML (line'],
    ['a talosconfig', () => ({ text: 'context: x\ncontexts:\n  x: {}\n' }), 'has no contexts'],
  ])('%s', async (_, options, words) => expect(await problem(options())).toContain(words))

  it('does not quote a line of a broken file', async () => {
    expect(await problem({ text: 'users:\n- {token: verysecret\n  }}: :' })).not.toContain('verysecret')
  })
})

describe('a kubeconfig out of a Secret', () => {
  const withUser = (user: object) =>
    JSON.stringify(config({ clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }], users: [{ name: 'u', user }] }))
  it.each([
    ['exec', { exec: { command: 'sh', args: ['-c', 'id'] } }],
    ['tokenFile', { tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token' }],
    ['client-key', { 'client-key': '/etc/shadow' }],
    ['auth-provider', { 'auth-provider': { name: 'oidc' } }],
  ])('may not use %s', async (name, user) =>
    expect(await problem({ text: withUser(user) })).toContain(`uses ${name}, which refers to files or commands`),
  )
  it('may hold its token itself', async () => expect(await loadKubeConfig({ text: withUser({ token: 't' }) })).toMatchObject({ ok: true }))
})

it('is the ServiceAccount in a pod that has no kubeconfig', async () => {
  const account = mkdtempSync(join(folder, 'account-'))
  writeFileSync(join(account, 'token'), 'abc')
  writeFileSync(join(account, 'namespace'), 'ichor-system\n')
  const env = { HOME: folder, KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  expect(await loadKubeConfig({ env, serviceAccountFolder: account })).toMatchObject({
    ok: true,
    value: { server: 'https://[fd00::1]:443', namespace: 'ichor-system', user: { tokenFile: join(account, 'token') } },
  })
})
