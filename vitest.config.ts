import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // Real machines: `npm run test:talos`.
    exclude: [...configDefaults.exclude, 'test/realtalos/**'],
    // Two cores: the real servers and the simulated machines need one of them.
    maxWorkers: 2,
  },
})
