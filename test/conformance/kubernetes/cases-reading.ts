import type { Api, Scenario } from './scenario.ts'
import { brief } from './scenario.ts'

const configMaps = (api: Api, name = ''): string => `/api/v1/namespaces/${api.namespace}/configmaps${name && `/${name}`}`
const post = (path: string, body: unknown) => ({ method: 'POST', path, body })
const merge = (path: string, body: unknown) => ({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
const names = (body: any) => body.items.map((item: any) => item.metadata.name)
const query = (path: string, parameters: Record<string, string>) => ({ path: `${path}?${new URLSearchParams(parameters).toString()}` })

const LABELS = ['a=1', 'a==1', 'a!=1', 'a in (1,2)', 'a notin (1)', 'a', '!a', 'a=1,b', 'a in (1, 2),b!=x', 'example.com/c=d', '', 'a=']

export const readingCases: readonly Scenario[] = [
  {
    name: 'selectors',
    run: async api => {
      const make = (name: string, labels: object) => api.quiet(post(configMaps(api), { metadata: { name, labels } }))
      await make('one', { a: '1' })
      await make('two', { a: '2', b: 'x' })
      await make('three', { a: '1', b: 'y', 'example.com/c': 'd' })
      await make('four', {})
      for (const labelSelector of LABELS) await api.step(`labels ${labelSelector}`, query(configMaps(api), { labelSelector }), names)
      await api.step('by name', query(configMaps(api), { fieldSelector: 'metadata.name=two' }), names)
      await api.step('by not name', query(configMaps(api), { fieldSelector: 'metadata.name!=two' }), names)
      await api.step('by namespace', query('/api/v1/configmaps', { fieldSelector: `metadata.namespace=${api.namespace}` }), names)
      await api.step('by what cannot be selected', query(configMaps(api), { fieldSelector: 'data.a=1' }), names)
      await api.step('by both', query(configMaps(api), { fieldSelector: 'metadata.name!=one', labelSelector: 'a=1' }), names)
      const pods = `/api/v1/namespaces/${api.namespace}/pods`
      for (const [name, nodeName] of [
        ['p', 'n1'],
        ['q', 'n2'],
        ['r', undefined],
      ] as const) {
        await api.quiet(post(pods, { metadata: { name }, spec: { nodeName, containers: [{ name: 'c', image: 'i' }] } }))
      }
      await api.quiet(merge(`${pods}/p/status`, { status: { phase: 'Running' } }))
      await api.step(
        'pods of a node',
        query('/api/v1/pods', { fieldSelector: `spec.nodeName=n1,metadata.namespace=${api.namespace}` }),
        names,
      )
      await api.step('pods of no node', query(pods, { fieldSelector: 'spec.nodeName=' }), names)
      await api.step('pods that do not run', query(pods, { fieldSelector: 'status.phase!=Running' }), names)
      const operations = `/apis/ichor.maesh.dev/v1alpha1/namespaces/${api.namespace}/talosoperations`
      await api.step('custom by name', query(operations, { fieldSelector: 'metadata.name=x' }), names)
      await api.step('custom by spec', query(operations, { fieldSelector: 'spec.kind=x' }), names)
    },
  },
  {
    name: 'pages',
    run: async api => {
      for (const name of ['a', 'b', 'c', 'd', 'e'])
        await api.quiet(post(configMaps(api), { metadata: { name, labels: { odd: String('ace'.includes(name)) } } }))
      const see = (body: any) => ({ names: names(body), metadata: body.metadata })
      const first = (await api.step('first', query(configMaps(api), { limit: '2' }), see)).body
      await api.quiet({ method: 'DELETE', path: configMaps(api, 'd') })
      await api.quiet(post(configMaps(api), { metadata: { name: 'cc' } }))
      const second = (await api.step('second, as it was', query(configMaps(api), { limit: '2', continue: first.metadata.continue }), see))
        .body
      api.record('one moment', { sameVersion: second.metadata.resourceVersion === first.metadata.resourceVersion })
      await api.step('third', query(configMaps(api), { limit: '2', continue: second.metadata.continue }), see)
      await api.step('with a selector', query(configMaps(api), { limit: '1', labelSelector: 'odd=true' }), see)
      await api.step('all at once', query(configMaps(api), { limit: '100' }), see)
      await api.step('exactly as many', query(configMaps(api), { limit: '5' }), see)
    },
  },
  {
    name: 'versions of lists',
    run: async api => {
      await api.quiet(post(configMaps(api), { metadata: { name: 'a' } }))
      const list = (await api.quiet({ path: configMaps(api) })).body
      const version: string = list.metadata.resourceVersion
      await api.step('any', query(configMaps(api), { resourceVersion: '0' }), body => body.kind)
      await api.step('not older', query(configMaps(api), { resourceVersion: version, resourceVersionMatch: 'NotOlderThan' }), names)
      await api.step('exactly', query(configMaps(api), { resourceVersion: version, resourceVersionMatch: 'Exact' }), names)
      await api.step('no number', query(configMaps(api), { resourceVersion: 'x' }))
      await api.step('match without version', query(configMaps(api), { resourceVersionMatch: 'Exact' }))
      await api.step('still to come', query(configMaps(api), { resourceVersion: '999999999', resourceVersionMatch: 'NotOlderThan' }))
    },
  },
  {
    name: 'watch',
    run: async api => {
      const list = (await api.quiet({ path: configMaps(api) })).body
      const since = { watch: 'true', resourceVersion: list.metadata.resourceVersion as string }
      const all = await api.watch(query(configMaps(api), since))
      const some = await api.watch(query(configMaps(api), { ...since, labelSelector: 'a=1' }))
      const one = await api.watch(query(configMaps(api), { ...since, fieldSelector: 'metadata.name=x' }))
      await api.quiet(post(configMaps(api), { metadata: { name: 'x' } }))
      await api.quiet(merge(configMaps(api, 'x'), { metadata: { labels: { a: '1' } } }))
      await api.quiet(merge(configMaps(api, 'x'), { data: { k: 'v' } }))
      await api.quiet(merge(configMaps(api, 'x'), { metadata: { labels: { a: '2' } } }))
      await api.quiet(post(configMaps(api), { metadata: { name: 'y', labels: { a: '1' } } }))
      await api.quiet({ method: 'DELETE', path: configMaps(api, 'x') })
      api.record('all', { events: brief(await all.events(6)).slice(-6) })
      api.record('some', { events: brief(await some.events(4)) })
      api.record('one', { events: brief(await one.events(5)) })
      for (const open of [all, some, one]) open.stop()
      const late = await api.watch(query(configMaps(api), { ...since, timeoutSeconds: '2' }))
      api.record('later, from the same version, until its time is over', {
        events: brief((await late.ended()).filter(event => event.type !== 'BOOKMARK')),
      })
    },
  },
  {
    name: 'watch from the beginning',
    run: async api => {
      for (const name of ['a', 'b']) await api.quiet(post(configMaps(api), { metadata: { name } }))
      const listing = await api.watch(
        query(configMaps(api), {
          watch: 'true',
          sendInitialEvents: 'true',
          resourceVersionMatch: 'NotOlderThan',
          allowWatchBookmarks: 'true',
        }),
      )
      const initial = (await listing.events(3)).slice(0, 3)
      api.record('initial events', {
        events: brief(initial),
        bookmarkHasVersion: /^\d+$/.test(initial[2]?.object.metadata.resourceVersion),
      })
      await api.quiet(post(configMaps(api), { metadata: { name: 'c' } }))
      api.record('then changes', { events: brief((await listing.events(4)).slice(3, 4)) })
      listing.stop()
      const unset = await api.watch(query(configMaps(api), { watch: 'true' }))
      const added = brief((await unset.events(3)).slice(0, 3)).toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
      api.record('without a version', { events: added })
      unset.stop()
      await api.step('initial events without match', query(configMaps(api), { watch: 'true', sendInitialEvents: 'true' }))
      await api.step(
        'match without initial events',
        query(configMaps(api), { watch: 'true', resourceVersionMatch: 'NotOlderThan', resourceVersion: '0' }),
      )
      await api.step(
        'initial events for a list',
        query(configMaps(api), { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }),
      )
    },
  },
  {
    name: 'bookmarks at the end',
    run: async api => {
      const { body } = await api.quiet({ path: configMaps(api) })
      const open = await api.watch(
        query(configMaps(api), {
          watch: 'true',
          resourceVersion: body.metadata.resourceVersion,
          allowWatchBookmarks: 'true',
          timeoutSeconds: '4',
        }),
      )
      await api.quiet(post(configMaps(api), { metadata: { name: 'a' } }))
      const events = await open.ended()
      const last = events.at(-1)
      api.record('the last', { type: last?.type, object: last?.object, events: events.length > 1 })
    },
  },
  {
    name: 'metadata alone',
    run: async api => {
      await api.quiet(post(configMaps(api), { metadata: { name: 'a' }, data: { k: 'v' } }))
      const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
      await api.step('one', { path: configMaps(api, 'a'), accept })
      await api.step('all', { path: configMaps(api), accept: accept.replace('Metadata', 'MetadataList') })
    },
  },
]
