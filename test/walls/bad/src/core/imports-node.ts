export const itself = () => import('node:fs')
