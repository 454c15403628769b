import type { LaterWords } from "../en";

export const visit: LaterWords["visit"] = {
  signIn: "Iniciar sesión",
  join: "Crear una cuenta",
  channels: "Abiertos a todo el mundo",
  reading: "Estás leyendo sin cuenta.",
  takePart: "Con una cuenta puedes escribir aquí, reaccionar y enterarte de lo nuevo.",
  needsAccount: "Para esto hace falta una cuenta",
  closed: "Esto no está abierto a todo el mundo",
  closedText:
    "Puede que sea solo para miembros, o que el enlace sea antiguo o esté mal escrito. Inicia sesión para verlo.",
  ofOneself: (operator) => `«${operator}:» busca entre lo propio: inicia sesión primero.`,
  none: "Ahora mismo no hay ningún canal abierto a todo el mundo.",
};
