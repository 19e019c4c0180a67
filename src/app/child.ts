// Child processes that never outlive this one: a small shell watches over each, and kills it as soon as this process is gone,
// however it went (the pipe between the two closes then).
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'

// $1 is a folder to remove when the watch ends because we died ('' for none); the rest is the command.
const watchdog = `
exec 3<&0
folder=$1; shift
"$@" </dev/null 3<&- 4>&- & child=$!
echo $child >&4; exec 4>&-
{ read -r _ <&3; trap '' TERM; kill -KILL $child; [ -z "$folder" ] || { sleep 1; rm -rf -- "$folder"; }; } 2>/dev/null & watch=$!
wait $child; code=$?
kill $watch 2>/dev/null
exit $code
`

export interface Child {
  pid: number
  /** Resolves with the exit code once the process is gone; of one that a signal ended, 128 and the number of the signal. */
  exited: Promise<number>
  hasExited(): boolean
  kill(signal?: NodeJS.Signals): Promise<void>
  /** The end of what it wrote. */
  lastWords(): string
}

export async function startChild(start: { command: string; args: string[]; logPath: string; removeOnCrash?: string }): Promise<Child> {
  const log = openSync(start.logPath, 'a')
  const shell = spawn('/bin/sh', ['-c', watchdog, 'watchdog', start.removeOnCrash ?? '', start.command, ...start.args], {
    // A session of its own: Ctrl-C in the terminal is for us, and we end our children ourselves.
    detached: true,
    stdio: ['pipe', log, log, 'ignore', 'pipe'],
  })
  closeSync(log)
  let gone = false
  const exited = new Promise<number>((resolve, reject) => {
    shell.once('error', reject)
    shell.once('exit', (code, signal) => {
      gone = true
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0))
    })
  })
  const pid = await new Promise<number>((resolve, reject) => {
    shell.once('error', reject)
    shell.stdio[4]!.once('data', (line: Buffer) => resolve(Number(line.toString())))
    shell.once('exit', () => reject(new Error(`${start.command} could not be started`)))
  })
  return {
    pid,
    exited,
    hasExited: () => gone,
    kill: async (signal = 'SIGKILL') => {
      if (!gone) {
        try {
          process.kill(pid, signal)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
        }
      }
      await exited
    },
    lastWords: () => readFileSync(start.logPath, 'utf8').trim().split('\n').slice(-8).join('\n'),
  }
}
