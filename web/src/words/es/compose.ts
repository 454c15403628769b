import type { Words } from "../en";

export const compose: Words["compose"] = {
  placeholder: (where) => `Escribir en ${where}`,
  send: "Enviar",
};
