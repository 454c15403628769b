/** Messages and what one can do with them. */
export const messages = {};
