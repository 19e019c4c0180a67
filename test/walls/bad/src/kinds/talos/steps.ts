export const steps = 'innocent'
