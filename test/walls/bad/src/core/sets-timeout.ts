export const itself = (then: () => void) => setTimeout(then, 1_000)
