import { claimsOf } from '../api/pod-claims.ts'
import { RESOURCE, conditionOf } from './objects.ts'
import { createRandom } from './random.ts'
import type { Site } from './site.ts'
import type { Draft, KubeObject } from './store.ts'

type PodSpec = { nodeName?: string; volumes?: unknown }

/** What holds the data of a claim. */
type Volume = { readonly name: string; readonly claim: { readonly namespace: string; readonly name: string } }

const volumesOf = (pod: KubeObject): readonly Volume[] => {
  const { namespace = '', name } = pod.metadata
  return claimsOf(name, (pod.spec as PodSpec).volumes).map(claim => ({
    name: `pv-${namespace}-${claim}`,
    claim: { namespace, name: claim },
  }))
}

const persistentVolume = ({ name, claim }: Volume): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    csi: { driver: 'csi.example.com', volumeHandle: name },
    claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim },
  },
  status: { phase: 'Bound' },
})

/** Of the name alone, so that it takes no number from the world's own row: what a seed is known for stays as it was. */
const uidOf = (name: string): string =>
  createRandom(Array.from(name).reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 2 ** 31, 7)).uuid()

type AttachmentSpec = { nodeName: string; source: { persistentVolumeName: string } }

/** UIDs of attachments that are being taken away. */
const detaching = new WeakMap<Site, Set<string>>()

/** The attach-detach controller: a volume is attached where a pod that uses it runs, and detached a while after the last such pod is gone. */
export const reconcileVolumes = (site: Site, again: () => void): void => {
  const { store, schedule, durations, journal } = site
  const under = detaching.get(site) ?? new Set<string>()
  detaching.set(site, under)
  const uses = (attachment: KubeObject): boolean => {
    const spec = attachment.spec as AttachmentSpec
    return store
      .list(RESOURCE.pods)
      .items.some(
        pod => (pod.spec as PodSpec).nodeName === spec.nodeName && volumesOf(pod).some(v => v.name === spec.source.persistentVolumeName),
      )
  }
  for (const pod of store.list(RESOURCE.pods).items) {
    const { nodeName } = pod.spec as PodSpec
    if (!nodeName || conditionOf(pod, 'Ready')?.status !== 'True') continue
    for (const volume of volumesOf(pod)) {
      const name = `csi-${volume.name}-${nodeName}`
      if (store.get(RESOURCE.attachments, '', name)) continue
      if (!store.get(RESOURCE.volumes, '', volume.name)) store.create(RESOURCE.volumes, persistentVolume(volume), uidOf(volume.name))
      store.create(RESOURCE.attachments, {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'VolumeAttachment',
        metadata: { name },
        spec: { attacher: 'csi.example.com', nodeName, source: { persistentVolumeName: volume.name } },
        status: { attached: true },
      })
    }
  }
  for (const attachment of store.list(RESOURCE.attachments).items) {
    const { name, uid } = attachment.metadata
    if (under.has(uid) || uses(attachment)) continue
    under.add(uid)
    schedule.after(durations.draw('detachVolume'), () => {
      under.delete(uid)
      if (uses(attachment)) return again()
      if (store.remove(RESOURCE.attachments, '', name, { uid }).ok)
        journal.write((attachment.spec as AttachmentSpec).nodeName, 'detached', name)
    })
  }
}
