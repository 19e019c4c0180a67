/** An address as part of a URL. */
export const inURL = (address: string): string => (address.includes(':') ? `[${address}]` : address)
