/** Running the place: channels, groups, people, the organization. */
export const manage = {};
