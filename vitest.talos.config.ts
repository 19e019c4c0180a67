import { defineConfig } from 'vitest/config'

// For `npm run test:talos` alone: needs real Talos machines, which it starts.
export default defineConfig({
  test: {
    include: ['test/realtalos/*.test.ts', 'test/conformance/talos/recorded.test.ts'],
    // There is one cluster, and some tests end machines of it.
    fileParallelism: false,
    testTimeout: 60_000,
  },
})
