import type { Words } from "../en";

export const common: Words["common"] = {
  close: "Fermer",
  cancel: "Annuler",
  save: "Enregistrer",
  delete: "Supprimer",
  edit: "Modifier",
  retry: "Réessayer",
  loading: "Chargement…",
  back: "Retour",
  search: "Rechercher",
  more: "Plus",
  you: "vous",
  noTopic: "discussion générale",
  unknownPerson: "Quelqu’un",
  unknownChannel: "canal inconnu",
  noteToSelf: "Notes personnelles",
  unread: (count) => (count < 2 ? `${count} non lu` : `${count} non lus`),
  saved: "Enregistré",
  undo: "Annuler",
  notUndone: "Cela a changé entre-temps : on ne peut plus l’annuler.",
  takeOut: (name) => `Retirer ${name}`,
  nobody: "Personne",
  /** `color_scheme`. */
  schemes: { 1: "Comme le système", 2: "Sombre", 3: "Clair" },
};
