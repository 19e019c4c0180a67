import type { Scene } from './scene.ts'

/** One rule that must hold in every run. */
export type Checker = {
  readonly name: string
  /** Of the list of invariants, where it has a number there. */
  readonly rule: string
  /** Absent: of all kinds. */
  readonly kinds?: readonly string[]
  /** Takes its post; what it answers is asked once more at the end, when all is mended and everything has settled. */
  readonly post: (scene: Scene, object: (what: string) => void) => (() => void) | void
}

export type Violation = { readonly checker: string; readonly at: number; readonly what: string }
