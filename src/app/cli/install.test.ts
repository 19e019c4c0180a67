import { beforeEach, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Bench, bench, failure, putOperation, until } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench()
})
const IMAGE = ['--image', 'registry.example.org/ichor:0.1.0']

describe('the arguments of install', () => {
  it.each([
    [['--image', 'not valid image'], "option '--image <image>' argument 'not valid image' is invalid"],
    [['--image', 'https://registry.example.org/ichor:0.1.0'], 'It must be an image such as registry.example.org/ichor:0.1.0.'],
    [['--image', 'registry.example.org/Ichor:0.1.0'], 'It must be an image'],
    [['--image', 'registry.example.org/ichor:'], 'It must be an image'],
    [['--image', ''], 'It must be an image'],
    [[...IMAGE, '--no-controller'], "option '--no-controller' cannot be used with option '--image <image>'"],
    [['--no-controller', '--replicas', '3'], "option '--no-controller' cannot be used with option '--replicas <n>'"],
    [[...IMAGE, '--controller-user', 'ada'], "option '--controller-user <name>' cannot be used with option '--image <image>'"],
    [['--controller-user', 'ada'], '--controller-user is for a controller that you run yourself: add --no-controller'],
    [['--crds-only', '--talos-patch'], "option '--talos-patch' cannot be used with option '--crds-only'"],
    [['--crds-only', ...IMAGE], "option '--crds-only' cannot be used with option '--image <image>'"],
    [['--crds-only', '--no-controller'], "option '--crds-only' cannot be used with option '--no-controller'"],
    [['--crds-only', '--talos-cluster', 'home'], "option '--crds-only' cannot be used with option '--talos-cluster <name>'"],
    [['--talos-patch', '--dry-run'], "option '--talos-patch' cannot be used with option '--dry-run'"],
    [[...IMAGE, '-o', 'yaml', '--dry-run'], "option '-o, --output <format>' cannot be used with option '--dry-run'"],
  ])('%j: refused', async (args, said) => {
    expect(await world.run('install', ...args)).toBe(2)
    expect(world.err.join('\n')).toContain(said)
    expect([world.out, world.writes]).toEqual([[], []])
  })

  it.each([
    'ichor',
    'ichor:0.1.0',
    'localhost:5000/ichor:0.1.0',
    'ghcr.io/maesh/ichor__x/a-b.c:v0.1.0-rc.1',
    `registry.example.org/ichor:0.1.0@sha256:${'a'.repeat(64)}`,
    `[fd00::1]:5000/ichor@sha256:${'0'.repeat(64)}`,
  ])('--image %s: taken', async image => {
    expect(await world.run('install', '--image', image, '-o', 'yaml')).toBe(0)
    const objects = parseAllDocuments(world.out.join('\n')).map(document => document.toJS() as unknown)
    expect(JSON.stringify(objects)).toContain(JSON.stringify(image))
  })
})

describe('install over what runs already', () => {
  it('waits for the controller as it is now: the one from before stays available where the new one does not come up', async () => {
    let exit: number | undefined
    const run = world.run('install', ...IMAGE).then(code => (exit = code))
    await until(() => world.writes.some(write => write.startsWith('apply deployments')))
    const reports = (updatedReplicas: number) =>
      world.change('deployments', 'ichor-controller', o => {
        const { generation: observedGeneration } = o.metadata
        o.status = { observedGeneration, replicas: 2, updatedReplicas, conditions: [{ type: 'Available', status: 'True' }] }
      })
    await until(() => world.out.some(line => line.includes('deployment')))
    reports(1)
    world.pass(299_000)
    await new Promise(resolve => setImmediate(resolve))
    expect(exit).toBeUndefined()
    reports(2)
    expect(await run).toBe(0)
  })
})

describe('uninstall', () => {
  const crd = { metadata: { name: 'talosoperations.ichor.maesh.dev', namespace: '' } }
  const installed = async () => {
    await world.run('install', ...IMAGE, '--no-wait')
    world.writes.length = 0
  }

  it.each(['forbidden', 'busy', 'unreachable'] as const)('removes nothing where operations at work cannot be seen: %s', async kind => {
    await installed()
    putOperation(world, 'a', { status: { phase: 'Running' } })
    world.faults.set('list talosoperations', { kind, message: 'no answer' })
    expect([await world.run('uninstall', '--yes'), world.writes]).toEqual([1, []])
    world.faults.clear()
    expect([await world.run('uninstall', '--yes'), world.writes]).toEqual([3, []])
    world.faults.set('list talosoperations', { kind: 'unsupported', message: 'no such type' })
    expect(await world.run('uninstall', '--yes')).toBe(0)
    expect(world.writes).toContain('delete deployments ichor-controller')
  })

  it('removes nothing while an operation that failed on one machine carries another to its end', async () => {
    await installed()
    const machine = (name: string, phase: string) => ({ name, role: 'worker', phase })
    putOperation(world, 'a', { status: { ...failure, machines: [machine('wk-1', 'Failed'), machine('wk-2', 'Running')] } })
    expect([await world.run('uninstall', '--yes'), world.writes]).toEqual([3, []])
    world.change('talosoperations', 'a', o => (o.status.machines[1].phase = 'Completed'))
    expect(await world.run('uninstall', '--yes')).toBe(0)
  })

  it('removes what is there from an API server that knows no admission policies', async () => {
    await world.run('install', ...IMAGE, '--without-policies', '--no-wait')
    for (const type of ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'])
      world.faults.set(`* ${type}`, { kind: 'unsupported', message: 'the server does not know this path or type' })
    expect([await world.run('uninstall', '--yes'), world.err.filter(line => line.startsWith('error'))]).toEqual([0, []])
    expect(world.writes).toContain('delete deployments ichor-controller')
  })

  it('removes nothing where the types that it was asked to remove cannot be seen', async () => {
    await installed()
    world.crds = [crd]
    world.faults.set('get customresourcedefinitions', { kind: 'forbidden', message: 'no' })
    expect([await world.run('uninstall', '--crds', '--confirm', 'ichor-system'), world.writes]).toEqual([1, []])
  })
})
