export const itself = () => process.env.HOME
