export const itself = () => new Date()
export const isInnocent = (text: string) => new Date(text)
