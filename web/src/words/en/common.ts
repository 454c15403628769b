/** What several parts say. */
export const common = {
  close: "Close",
  cancel: "Cancel",
  save: "Save",
  delete: "Delete",
  edit: "Edit",
  retry: "Try again",
  loading: "Loading…",
  back: "Back",
  search: "Search",
  more: "More",
  you: "you",
  noTopic: "general chat",
  unknownPerson: "Somebody",
  unknownChannel: "unknown channel",
  noteToSelf: "Notes to yourself",
  unread: (count: number) => (count === 1 ? "1 unread" : `${count} unread`),
  saved: "Saved",
  takeOut: (name: string) => `Remove ${name}`,
  nobody: "Nobody",
  /** `color_scheme`. */
  schemes: { 1: "As the system", 2: "Dark", 3: "Light" },
};
