import { beforeEach, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Bench, bench } from './test-bench.ts'

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
