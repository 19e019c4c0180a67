import { describe, expect, test } from 'vitest'
import type { Draft, StoreEvent, StoreResult } from './store.ts'
import { createStore } from './store.ts'

const seeded = () => {
  let state = 7
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}
const world = (history?: number) => {
  const clock = { ms: Date.parse('2026-01-02T03:04:05.678Z') }
  return { clock, store: createStore({ now: () => clock.ms, random: seeded(), history }) }
}
const configMap = (name: string, more: Partial<Draft['metadata']> = {}): Draft => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'one', ...more },
  data: { a: '1' },
})
const pod = (name: string, nodeName?: string): Draft => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'one' },
  spec: { nodeName, terminationGracePeriodSeconds: 20 },
})
const value = (result: StoreResult) => {
  if (!result.ok) throw new Error(result.fault.message)
  return result.value
}
const fault = (result: StoreResult) => (result.ok ? undefined : result.fault)

describe('create', () => {
  test('fills what is the server’s and freezes the object', () => {
    const { store } = world()
    const made = value(store.create('configmaps', configMap('a', { uid: 'mine', resourceVersion: '9' })))
    expect(made.metadata).toMatchObject({
      name: 'a',
      namespace: 'one',
      generation: 1,
      resourceVersion: '1',
      creationTimestamp: '2026-01-02T03:04:05Z',
    })
    expect(made.metadata.uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(() => ((made.data as Record<string, string>).a = '2')).toThrow(TypeError)
    expect(store.get('configmaps', 'one', 'a')).toBe(made)
  })
  test('draws a name from generateName, and needs either', () => {
    const { store } = world()
    expect(value(store.create('configmaps', configMap('', { generateName: 'x-' }))).metadata.name).toMatch(/^x-[a-z0-9]{5}$/)
    expect(fault(store.create('configmaps', configMap('')))?.reason).toBe('Invalid')
  })
  test('refuses a name that is taken, in its own namespace and resource only', () => {
    const { store } = world()
    store.create('configmaps', configMap('a'))
    expect(fault(store.create('configmaps', configMap('a')))).toEqual({
      code: 409,
      reason: 'AlreadyExists',
      message: 'configmaps "a" already exists',
    })
    expect(store.create('configmaps', configMap('a', { namespace: 'two' })).ok).toBe(true)
    expect(store.create('secrets', configMap('a')).ok).toBe(true)
  })
})

describe('update', () => {
  test('compares and swaps where a version is given', () => {
    const { store } = world()
    const first = value(store.create('configmaps', configMap('a')))
    value(store.update('configmaps', { ...first, data: { a: '2' } }))
    expect(fault(store.update('configmaps', { ...first, data: { a: '3' } }))).toEqual({
      code: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    })
    expect(store.update('configmaps', { ...configMap('a'), data: { a: '3' } }).ok).toBe(true)
  })
  test('refuses another uid, and an object that is not there', () => {
    const { store } = world()
    store.create('configmaps', configMap('a'))
    expect(fault(store.update('configmaps', configMap('a', { uid: 'other' })))?.reason).toBe('Conflict')
    expect(fault(store.update('leases.coordination.k8s.io', configMap('a')))?.message).toBe('leases.coordination.k8s.io "a" not found')
  })
  test('counts generations for what is neither metadata nor status', () => {
    const { store } = world()
    let it = value(store.create('configmaps', configMap('a')))
    it = value(store.update('configmaps', { ...it, status: { x: 1 }, metadata: { ...it.metadata, labels: { l: 'v' } } }))
    expect([it.metadata.generation, it.metadata.resourceVersion]).toEqual([1, '2'])
    it = value(store.update('configmaps', { ...it, spec: { y: 1 } }))
    expect([it.metadata.generation, it.metadata.resourceVersion]).toEqual([2, '3'])
  })
  test('a write without effect keeps the version and tells nobody', () => {
    const { store } = world()
    const first = value(store.create('configmaps', configMap('a')))
    const seen: StoreEvent[] = []
    store.watch('configmaps', undefined, event => seen.push(event))
    const again = value(
      store.update('configmaps', {
        data: { a: '1' },
        metadata: { name: 'a', namespace: 'one', generation: 77 },
        kind: 'ConfigMap',
        apiVersion: 'v1',
      }),
    )
    expect(again).toBe(first)
    expect(seen).toEqual([])
  })
})

describe('remove', () => {
  test('deletes, and says what was there', () => {
    const { store } = world()
    store.create('configmaps', configMap('a'))
    expect(value(store.remove('configmaps', 'one', 'a')).metadata).toMatchObject({ name: 'a', resourceVersion: '2' })
    expect(store.get('configmaps', 'one', 'a')).toBeUndefined()
    expect(fault(store.remove('configmaps', 'one', 'a'))?.code).toBe(404)
  })
  test('honours preconditions', () => {
    const { store } = world()
    const it = value(store.create('configmaps', configMap('a')))
    expect(fault(store.remove('configmaps', 'one', 'a', { uid: 'other' }))?.reason).toBe('Conflict')
    expect(fault(store.remove('configmaps', 'one', 'a', { resourceVersion: '99' }))?.reason).toBe('Conflict')
    expect(store.remove('configmaps', 'one', 'a', { uid: it.metadata.uid, resourceVersion: it.metadata.resourceVersion }).ok).toBe(true)
  })
  test('waits for the last finalizer, and lets none be added meanwhile', () => {
    const { store } = world()
    store.create('configmaps', configMap('a', { finalizers: ['x/a', 'x/b'] }))
    const leaving = value(store.remove('configmaps', 'one', 'a'))
    expect(leaving.metadata).toMatchObject({ deletionTimestamp: '2026-01-02T03:04:05Z', generation: 2 })
    const again = value(store.remove('configmaps', 'one', 'a'))
    expect(again).toBe(leaving)
    expect(fault(store.create('configmaps', configMap('a')))?.message).toBe('object is being deleted: configmaps "a" already exists')
    expect(fault(store.update('configmaps', configMap('a', { finalizers: ['x/a', 'x/c'] })))?.reason).toBe('Invalid')
    value(store.update('configmaps', configMap('a', { finalizers: ['x/b'] })))
    expect(store.get('configmaps', 'one', 'a')).toBeDefined()
    const seen: string[] = []
    store.watch('configmaps', undefined, event => seen.push(event.type))
    value(store.update('configmaps', configMap('a')))
    expect(store.get('configmaps', 'one', 'a')).toBeUndefined()
    expect(seen).toEqual(['DELETED'])
  })
  test('gives a pod on a node its time, and takes it with grace 0', () => {
    const { store } = world()
    store.create('pods', pod('bound', 'n1'))
    store.create('pods', pod('unbound'))
    expect(value(store.remove('pods', 'one', 'bound')).metadata).toMatchObject({
      deletionTimestamp: '2026-01-02T03:04:25Z',
      deletionGracePeriodSeconds: 20,
    })
    expect(value(store.remove('pods', 'one', 'bound', { gracePeriodSeconds: 5 })).metadata.deletionGracePeriodSeconds).toBe(5)
    expect(value(store.remove('pods', 'one', 'bound', { gracePeriodSeconds: 50 })).metadata.deletionGracePeriodSeconds).toBe(5)
    store.remove('pods', 'one', 'bound', { gracePeriodSeconds: 0 })
    store.remove('pods', 'one', 'unbound')
    expect(store.list('pods').items).toEqual([])
  })
})

describe('list', () => {
  test('is in order and within a namespace where one is named', () => {
    const { store } = world()
    for (const [namespace, name] of [
      ['two', 'a'],
      ['one', 'b'],
      ['one', 'a'],
      ['one-more', 'a'],
    ] as const)
      store.create('configmaps', configMap(name, { namespace }))
    const names = (namespace?: string) =>
      store.list('configmaps', namespace).items.map(item => `${item.metadata.namespace}/${item.metadata.name}`)
    expect(names()).toEqual(['one-more/a', 'one/a', 'one/b', 'two/a'])
    expect(names('one')).toEqual(['one/a', 'one/b'])
    expect(store.list('configmaps').resourceVersion).toBe('4')
  })
})

describe('watch', () => {
  test('replays what came after a version, then goes on until it is stopped', () => {
    const { store } = world()
    store.create('configmaps', configMap('a'))
    store.create('secrets', configMap('s'))
    store.create('configmaps', configMap('b'))
    const seen: string[] = []
    const watch = store.watch('configmaps', '1', ({ type, object }) => seen.push(`${type} ${object.metadata.name}`))
    store.remove('configmaps', 'one', 'a')
    if (watch.ok) watch.stop()
    store.create('configmaps', configMap('c'))
    expect(seen).toEqual(['ADDED b', 'DELETED a'])
  })
  test('says Expired for a version that the history lost, per resource', () => {
    const { store } = world(2)
    store.create('secrets', configMap('s'))
    for (const name of ['a', 'b', 'c', 'd']) store.create('configmaps', configMap(name))
    expect(store.watch('configmaps', '1', () => undefined)).toEqual({
      ok: false,
      fault: { code: 410, reason: 'Expired', message: 'too old resource version: 1 (3)' },
    })
    expect(store.watch('configmaps', '3', () => undefined).ok).toBe(true)
    expect(store.watch('secrets', '0', () => undefined).ok).toBe(true)
  })
  test('tells every listener the same order even when one of them writes', () => {
    const { store } = world()
    const orders: string[][] = [[], []]
    store.watch('configmaps', undefined, ({ object }) => {
      orders[0]?.push(object.metadata.resourceVersion)
      if (object.metadata.name === 'a' && !store.get('configmaps', 'one', 'b')) store.create('configmaps', configMap('b'))
    })
    store.watch('configmaps', undefined, ({ object }) => orders[1]?.push(object.metadata.resourceVersion))
    store.create('configmaps', configMap('a'))
    expect(orders).toEqual([
      ['1', '2'],
      ['1', '2'],
    ])
  })
  test('a listener that writes while it hears the past hears its own writes too', () => {
    const { store } = world()
    store.create('configmaps', configMap('a'))
    const names: string[] = []
    store.watch('configmaps', '0', ({ object }) => {
      names.push(object.metadata.name)
      if (object.metadata.name === 'a') store.create('configmaps', configMap('b'))
    })
    expect(names).toEqual(['a', 'b'])
  })
})
