import { describe, expect, test } from 'vitest'
import { createWorld } from './cluster.ts'
import { controlService, type ServiceOperation } from './service-control.ts'
import { startService } from './services.ts'

const start = () => {
  const world = createWorld({ seed: 4, controlPlanes: 1, workers: 1 })
  const machine = world.machine(1)
  startService(world.site, machine, 'ext-tool')
  const control = (id: string, operation: ServiceOperation) => {
    const { ok, ...rest } = controlService(world.site, machine, id, operation)
    return ok && 'value' in rest ? rest.value : (rest as { message: string }).message
  }
  return { world, machine, control }
}

describe('services by the Talos API', () => {
  const refused = (id: string, operation: string) => `service "${id}" doesn't support ${operation} operation via API`

  test.each(['apid', 'containerd', 'cri', 'machined', 'udevd', 'dashboard'])('%s cannot be controlled', id => {
    const { control } = start()
    expect(control(id, 'start')).toBe(`Service "${id}" started`)
    expect(control(id, 'stop')).toBe(refused(id, 'stop'))
    expect(control(id, 'restart')).toBe(refused(id, 'restart'))
  })

  test('one that there is not is told so', () => {
    const { control } = start()
    for (const operation of ['start', 'stop', 'restart'] as const) expect(control('nosuch', operation)).toBe('service "nosuch" not defined')
  })

  test('the kubelet is restarted; the node stays Ready, and its pods run on', () => {
    const { world, machine, control } = start()
    expect(control('kubelet', 'stop')).toBe(refused('kubelet', 'stop'))
    expect(control('kubelet', 'restart')).toBe('Service "kubelet" restarted')
    expect(machine.services.get('kubelet')).toMatchObject({ state: 'Preparing', health: 'unknown' })
    expect(
      machine.services
        .get('kubelet')
        ?.events.slice(-6)
        .map(e => e.state),
    ).toEqual([...['Stopping', 'Finished', 'Starting', 'Waiting', 'Preparing', 'Preparing']])
    expect(machine.kubelet).toBe(false)
    const bootID = machine.bootID
    world.schedule.advanceTo(world.schedule.now() + 120_000)
    expect(machine.services.get('kubelet')).toMatchObject({ state: 'Running', health: 'healthy' })
    expect(world.isUp(machine)).toBe(true)
    expect(machine.bootID).toBe(bootID)
  })

  test('services of extensions can be stopped and started', () => {
    const { world, machine, control } = start()
    expect(control('ext-tool', 'stop')).toBe('Service "ext-tool" stopped')
    expect(machine.services.get('ext-tool')?.state).toBe('Finished')
    expect(control('ext-tool', 'stop')).toBe('Service "ext-tool" stopped')
    expect(control('ext-tool', 'restart')).toBe('Service "ext-tool" restarted')
    world.schedule.advanceTo(world.schedule.now() + 60_000)
    expect(machine.services.get('ext-tool')?.state).toBe('Running')
  })
})
