export const dial = 'innocent'
