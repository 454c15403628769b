import type { Words } from "../en";

export const manage: Words["manage"] = {
  roles: {
    100: "Propietario",
    200: "Administrador",
    300: "Moderador",
    400: "Miembro",
    600: "Invitado",
  },
  systemGroups: {
    "role:everyone": "Todos, también invitados",
    "role:members": "Miembros",
    "role:fullmembers": "Miembros plenos",
    "role:moderators": "Moderadores y superiores",
    "role:administrators": "Administradores y propietarios",
    "role:owners": "Propietarios",
    "role:nobody": "Nadie",
    "role:internet": "Cualquiera en internet",
  },
  chosenPeople: "Personas y grupos elegidos…",
  whoMay: (what) => `${what}: personas y grupos`,
  addPeopleOrGroups: "Añadir personas o grupos",
  groupOf: "grupo",
};
