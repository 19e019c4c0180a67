export const itself = () => fetch('https://example.org')
