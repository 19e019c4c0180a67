export const queue = 'innocent'
