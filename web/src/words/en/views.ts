/** Views: inbox, recent conversations, search. */
export const views = {};
