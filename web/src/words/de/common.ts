import type { Words } from "../en";

export const common: Words["common"] = {
  close: "Schließen",
  cancel: "Abbrechen",
  save: "Speichern",
  delete: "Löschen",
  edit: "Bearbeiten",
  retry: "Noch einmal versuchen",
  loading: "Wird geladen …",
  back: "Zurück",
  search: "Suchen",
  more: "Mehr",
  you: "du",
  noTopic: "Allgemeines",
  unknownPerson: "Jemand",
  unknownChannel: "unbekannter Kanal",
  noteToSelf: "Notizen an dich selbst",
  unread: (count: number) => (count === 1 ? "1 ungelesen" : `${count} ungelesen`),
  saved: "Gespeichert",
  undo: "Rückgängig",
  notUndone: "Inzwischen ist es anders: Das lässt sich nicht mehr rückgängig machen.",
  takeOut: (name: string) => `${name} entfernen`,
  nobody: "Niemand",
  /** `color_scheme`. */
  schemes: { 1: "Wie das System", 2: "Dunkel", 3: "Hell" },
};
