/** One's own settings. */
export const settings = {};
