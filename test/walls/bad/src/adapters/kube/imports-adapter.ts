export * from '../talos/dial.ts'
