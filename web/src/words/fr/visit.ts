import type { LaterWords } from "../en";

export const visit: LaterWords["visit"] = {
  signIn: "Se connecter",
  join: "Créer un compte",
  channels: "Ouverts à tous",
  reading: "Vous lisez sans compte.",
  takePart: "Avec un compte, vous pouvez écrire ici, réagir et être prévenu des nouveautés.",
  needsAccount: "Il faut un compte pour cela",
  closed: "Ce n’est pas ouvert à tous",
  closedText:
    "C’est peut-être réservé aux membres, ou le lien est ancien ou mal saisi. Connectez-vous pour voir.",
  ofOneself: (operator) =>
    `« ${operator}: » cherche dans ce qui vous est propre : connectez-vous d’abord.`,
  none: "Aucun canal n’est ouvert à tous pour le moment.",
};
