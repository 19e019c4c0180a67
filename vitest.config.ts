import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // Real machines: `npm run test:talos`.
    exclude: [...configDefaults.exclude, 'test/realtalos/**'],
    // Two cores: the real servers and the simulated machines need one of them.
    maxWorkers: 2,
    // Bounds for what hangs, not for what is slow: a busy machine is no failure.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})
