/** What the exit code of `ichor` says. Part of the interface: scripts depend on it. */
export const EXIT = {
  ok: { code: 0, meaning: 'Done, as asked. With --wait and watch: the operation is Completed.' },
  error: {
    code: 1,
    meaning: 'It could not be done: the API server, a file or the network is in the way. With doctor: not all could be seen.',
  },
  usage: { code: 2, meaning: 'The command was wrong, or a confirmation is needed and nobody can be asked. Nothing was done.' },
  refused: { code: 3, meaning: 'The checks refuse the operation. No machine was touched. With doctor: something is wrong.' },
  stopped: { code: 4, meaning: 'The operation stands still or ended early: a step failed, or it was cancelled or deleted.' },
  timedOut: { code: 5, meaning: 'The time of --timeout passed. The operation goes on.' },
  interrupted: { code: 130, meaning: 'Ctrl-C. Watching stopped, the operation goes on.' },
} as const

export type Exit = keyof typeof EXIT

export const exitCodesText = (): string =>
  Object.values(EXIT)
    .map(({ code, meaning }) => `  ${String(code).padEnd(4)} ${meaning}`)
    .join('\n')
