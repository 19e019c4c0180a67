export interface Clock {
  now(): number
}
export const clock = undefined as Clock | undefined
