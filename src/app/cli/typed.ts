import type { ConnectionChoice, Session } from './session.ts'

/** What a command line chose, for the lines that it tells to type next: each is about the same cluster. */
export type Given = ConnectionChoice & { readonly talosconfig?: string; readonly talosContext?: string }

/** How each program is told of it. */
const FLAGS: Readonly<Record<string, Readonly<Partial<Record<keyof Given, string>>>>> = {
  ichor: { kubeconfig: '--kubeconfig', context: '--context' },
  kubectl: { kubeconfig: '--kubeconfig', context: '--context' },
  helm: { kubeconfig: '--kubeconfig', context: '--kube-context' },
  talosctl: { talosconfig: '--talosconfig', talosContext: '--context' },
}

/** A command of ichor, kubectl, helm or talosctl as it is typed here. */
export const typed = (command: string, calledAs: string, given: Given): string => {
  const [program = ''] = command.split(' ', 1)
  const flags = Object.entries(FLAGS[program] ?? {}).flatMap(([what, flag]) => {
    const value = given[what as keyof Given]
    return value === undefined || command.includes(` ${flag} `) ? [] : [flag, quoted(value)]
  })
  return [program === 'ichor' ? `${calledAs}${command.slice(program.length)}` : command, ...flags].join(' ')
}

/** The same for a command of this program, without its name. */
export const nextCommand = ({ outside, choice }: Pick<Session, 'outside' | 'choice'>, words: string): string =>
  typed(`ichor ${words}`, outside.calledAs, choice)

/** As a shell takes it for one word. */
const quoted = (word: string): string => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`)
