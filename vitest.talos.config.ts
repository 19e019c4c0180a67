import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Answers are recorded before the simulated machines are held against them. Who reaches a machine through another one may wait long for it after
// its death: machines are ended last. Operations leave etcd another leader, and the worker reset.
const order = ['talosctl', 'client', 'acts', 'recorded', 'config', 'failures', 'node', 'kubernetes']
const rank = ({ moduleId }: TestSpecification): number => order.findIndex(name => moduleId.endsWith(`/${name}.test.ts`))

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => rank(a) - rank(b))
  }
}

// For `npm run test:talos` alone: needs real Talos machines, which it starts.
export default defineConfig({
  test: {
    include: ['test/realtalos/*.test.ts', 'test/conformance/talos/recorded.test.ts'],
    // There is one cluster.
    fileParallelism: false,
    sequence: { sequencer: InOrder },
    testTimeout: 60_000,
  },
})
