import type { Words } from "../en";

export const common: Words["common"] = {
  close: "Cerrar",
  cancel: "Cancelar",
  save: "Guardar",
  delete: "Eliminar",
  edit: "Editar",
  retry: "Reintentar",
  loading: "Cargando…",
  back: "Atrás",
  search: "Buscar",
  more: "Más",
  you: "tú",
  noTopic: "charla general",
  unknownPerson: "Alguien",
  unknownChannel: "canal desconocido",
  noteToSelf: "Notas para ti",
  unread: (count) => (count === 1 ? "1 sin leer" : `${count} sin leer`),
  saved: "Guardado",
  undo: "Deshacer",
  notUndone: "Ha cambiado desde entonces: ya no se puede deshacer.",
  takeOut: (name) => `Quitar ${name}`,
  nobody: "Nadie",
  /** `color_scheme`. */
  schemes: { 1: "Como el sistema", 2: "Oscuro", 3: "Claro" },
};
