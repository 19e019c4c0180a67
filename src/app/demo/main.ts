import { runDemo } from './demo.ts'

// What is left then are timers and sockets that nobody needs.
process.exit(await runDemo(process.argv.slice(2)))
