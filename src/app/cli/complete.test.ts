import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COMPLETION_SCRIPTS } from './completion-scripts.ts'
import { bench, putCluster, putOperation, type Bench } from './test-bench.ts'

const asked = async (world: Bench, ...words: string[]): Promise<readonly string[]> => {
  world.out.length = 0
  expect(await world.run('__complete', '--', ...words)).toBe(0)
  expect(world.err).toEqual([])
  return world.out.map(line => line.split('\t')[0]!)
}

const filled = (): Bench => {
  const world = bench()
  putOperation(world, 'talos-1-13-9')
  putOperation(world, 'reboot-wk-1')
  putOperation(world, 'elsewhere', { namespace: 'other' })
  putCluster(world, 'home')
  putCluster(world, 'lab')
  for (const name of ['wk-1', 'wk-2', 'cp-1']) world.put('talosmachines', { metadata: { name }, spec: { clusterRef: { name: 'home' } } })
  return world
}

describe('completion', () => {
  it('knows commands and what is below them, but not its own door', async () => {
    const world = filled()
    expect(await asked(world, '')).toEqual(expect.arrayContaining(['upgrade', 'operation', 'cluster', 'completion']))
    expect(await asked(world, '')).not.toContain('__complete')
    expect(await asked(world, 'oper')).toEqual(['operation'])
    expect(await asked(world, 'operation', 'pa')).toEqual(['pause'])
    expect(await asked(world, 'upgrade', '')).toContain('talos')
  })

  it('knows names from the cluster: operations, clusters and machines, of the namespace that is asked for', async () => {
    const world = filled()
    expect(await asked(world, 'operation', 'get', '')).toEqual(['talos-1-13-9', 'reboot-wk-1'])
    expect(await asked(world, 'op', 'logs', 'tal')).toEqual(['talos-1-13-9'])
    expect(await asked(world, '-n', 'other', 'operation', 'get', '')).toEqual(['elsewhere'])
    expect(await asked(world, '--namespace=other', 'operation', 'watch', '')).toEqual(['elsewhere'])
    expect(await asked(world, 'cluster', 'get', '')).toEqual(['home', 'lab'])
    expect(await asked(world, 'machine', 'hold', 'wk')).toEqual(['wk-1', 'wk-2'])
    expect(await asked(world, 'upgrade', 'talos', 'v1.13.9', '--cluster', 'l')).toEqual(['lab'])
    expect(await asked(world, 'doctor', '--cluster', 'h')).toEqual(['home'])
    expect(await asked(world, 'lock', '')).toEqual(['release', 'home', 'lab'])
    for (const name of ['ichor-system', 'other']) world.put('namespaces', { metadata: { name, namespace: '' } })
    expect(await asked(world, 'operation', 'list', '-n', '')).toEqual(['ichor-system', 'other'])
    expect(await asked(world, '--namespace', 'o')).toEqual(['other'])
  })

  it('knows flags, those of the kinds and those of every command, and what they can be', async () => {
    const world = filled()
    expect(await asked(world, 'upgrade', 'talos', '--drain-p')).toEqual(['--drain-policy'])
    expect(await asked(world, 'upgrade', 'talos', '--drain-policy', '')).toEqual(['wait', 'force', 'skip'])
    expect(await asked(world, 'operation', 'list', '--kube')).toEqual(['--kubeconfig'])
    expect(await asked(world, 'operation', 'list', '-o', 'y')).toEqual(['yaml'])
    expect(await asked(world, 'doc')).toEqual(['doctor'])
    expect(await asked(world, 'doctor', '--talos')).toEqual(['--talosconfig', '--talos-context'])
    expect(await asked(world, 'completion', '')).toEqual(['bash', 'zsh', 'fish'])
  })

  it('has nothing to say after the last argument, and of what is no command', async () => {
    const world = filled()
    expect(await asked(world, 'operation', 'get', 'talos-1-13-9', '')).toEqual([])
    expect(await asked(world, 'nonsense', '')).toEqual([])
  })

  it('says nothing where there is no cluster, and goes on with what needs none', async () => {
    const world = filled()
    world.faults.set('*', { kind: 'unreachable', message: 'connection refused' })
    expect(await asked(world, 'operation', 'get', '')).toEqual([])
    expect(await asked(world, 'operation', 'ge')).toEqual(['get'])
  })

  it('is for bash, zsh and fish, and for nothing else', async () => {
    const world = bench()
    for (const shell of ['bash', 'zsh', 'fish'] as const) {
      world.out.length = 0
      expect(await world.run('completion', shell)).toBe(0)
      expect(`${world.out.join('\n')}\n`).toBe(COMPLETION_SCRIPTS[shell])
    }
    expect(await world.run('completion', 'sh')).toBe(2)
  })
})

const has = (shell: string): boolean => {
  try {
    execFileSync('sh', ['-c', `command -v ${shell}`])
    return true
  } catch {
    return false
  }
}

describe('the scripts', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ichor-complete-'))
    // Says what it is asked, so that the way from the shell to the program and back is what is tested.
    writeFileSync(join(folder, 'ichor'), `#!/bin/sh\nfor word; do printf 'w:%s\\tabout\\n' "$word"; done\n`, { mode: 0o755 })
    for (const [shell, text] of Object.entries(COMPLETION_SCRIPTS)) writeFileSync(join(folder, `ichor.${shell}`), text)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const env = () => ({ ...process.env, PATH: `${folder}:${process.env['PATH']}` })

  it('bash hands over the words as far as the cursor, without the = that it makes a word of', () => {
    const line = `. ${folder}/ichor.bash; COMP_WORDS=(ichor operation get -o = json up after); COMP_CWORD=6; _ichor; printf '%s\\n' "\${COMPREPLY[@]}"`
    const said = execFileSync('bash', ['--norc', '-c', line], { env: env() }).toString().trim().split('\n')
    expect(said).toEqual(['w:__complete', 'w:--', 'w:operation', 'w:get', 'w:-o', 'w:json', 'w:up'])
  })

  it('bash hands over an empty word right behind the =', () => {
    const line = `. ${folder}/ichor.bash; COMP_WORDS=(ichor operation list --output =); COMP_CWORD=4; _ichor; printf '%s\\n' "\${COMPREPLY[@]}"`
    const said = execFileSync('bash', ['--norc', '-c', line], { env: env() }).toString().trim().split('\n')
    expect(said).toEqual(['w:__complete', 'w:--', 'w:operation', 'w:list', 'w:--output', 'w:'])
  })

  it.skipIf(!has('zsh'))('zsh takes it without complaint', () => {
    execFileSync('zsh', ['-n', join(folder, 'ichor.zsh')])
  })

  it.skipIf(!has('fish'))('fish hands over the words as far as the cursor', () => {
    const offered = (line: string): readonly string[] =>
      execFileSync('fish', ['-c', `source ${folder}/ichor.fish; complete -C '${line}'`], { env: env() })
        .toString()
        .trim()
        .split('\n')
        .map(each => each.split('\t')[0]!)
        .toSorted()
    expect(offered('ichor operation get ')).toEqual(['w:', 'w:--', 'w:__complete', 'w:get', 'w:operation'])
    // Of what it is told, fish keeps what has the word under the cursor in it.
    expect(offered('ichor operation get up')).toEqual(['w:up'])
  })
})
