/** Running the place: channels, groups, people, the organization. */
export const manage = {
  roles: {
    100: "Owner",
    200: "Administrator",
    300: "Moderator",
    400: "Member",
    600: "Guest",
  },
  systemGroups: {
    "role:everyone": "Everyone, guests too",
    "role:members": "Members",
    "role:fullmembers": "Full members",
    "role:moderators": "Moderators and above",
    "role:administrators": "Administrators and owners",
    "role:owners": "Owners",
    "role:nobody": "Nobody",
    "role:internet": "Everyone on the internet",
  },
  chosenPeople: "Chosen people and groups…",
  whoMay: (what: string) => `${what}: people and groups`,
  addPeopleOrGroups: "Add people or groups",
  groupOf: "group",
};
