import type { Checker } from '../checker.ts'

/** What must hold of who is taken out for good. */
export const resetAsRecorded: Checker = {
  name: 'reset-as-recorded',
  rule: 'I22',
  kinds: ['node'],
  post: (scene, object) => {
    const { etcd } = scene.world
    const goalOf = (name: 'uuid' | 'member'): readonly unknown[] =>
      scene.stage.operations().flatMap(({ status }) => (status.machines ?? []).map(target => target.goal?.[name] ?? ''))
    // Orphans are nobody's machine, and come and go as the storm likes.
    const membersNow = (): ReadonlySet<string> => new Set(etcd.members().flatMap(m => (m.machine ? [m.id] : [])))
    let members = membersNow()
    scene.onEntry(() => {
      const now = membersNow()
      const gone = [...members].filter(id => !now.has(id))
      members = now
      const recorded = goalOf('member')
      for (const id of gone) if (!recorded.includes(id)) object(`member ${id} was taken out of etcd, and no operation has recorded it`)
      if (gone.length > 0 && now.size === 0) object('the last member of etcd was taken out')
    })
    scene.onAct(({ what, machine }) => {
      if (what !== 'reset-requested') return
      const uuid = scene.openOn(machine)?.target.goal?.['uuid'] ?? ''
      if (uuid !== '' && uuid !== machine.uuid) object(`${machine.name} is reset, and it is not the machine that was recorded: ${uuid}`)
      const isLast =
        machine.role === 'controlplane' && !scene.world.machines.some(m => m !== machine && m.role === 'controlplane' && m.config !== '')
      if (isLast) object(`${machine.name} is reset, the last control plane`)
    })
  },
}
