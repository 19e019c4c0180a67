export const itself = () => Math.random()
