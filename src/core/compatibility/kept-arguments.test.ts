// The invented machines have the list for themselves: both are to be the same.
import { describe, expect, it } from 'vitest'
import { readKubernetesConfig } from '../../world/kubernetes-config.ts'
import { CONFIG_PLACES } from './removed-options.ts'
import { KEPT_ARGUMENTS } from './kept-arguments.ts'

const deniedBy = (component: keyof typeof CONFIG_PLACES, argument: string): string | undefined => {
  const [part, section] = CONFIG_PLACES[component].section
  const text = `machine:\n    type: controlplane\n${part === 'machine' ? '' : `${part}:\n`}    ${section}:\n        extraArgs:\n            ${argument}: x\n`
  const { kubelet, components } = readKubernetesConfig(text, 'v1.36.2')
  return component === 'kubelet' ? kubelet.denied : components.get(component as 'kube-apiserver')?.denied
}

describe.each(['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet'] as const)('%s', component => {
  it.each(KEPT_ARGUMENTS[component] ?? [])('%s is kept by invented machines, too', argument => {
    expect(deniedBy(component, argument)).toBe(argument)
  })

  it('other arguments are free', () => expect(deniedBy(component, 'v')).toBeUndefined())
})
