import type { LaterWords } from "../en";

export const visit: LaterWords["visit"] = {
  signIn: "Anmelden",
  join: "Konto anlegen",
  channels: "Für alle offen",
  reading: "Du liest ohne Konto mit.",
  takePart: "Mit einem Konto kannst du hier schreiben, reagieren und erfährst, was es Neues gibt.",
  needsAccount: "Dafür brauchst du ein Konto",
  closed: "Das ist nicht für alle offen",
  closedText:
    "Vielleicht ist es nur für Mitglieder, oder der Link ist alt oder falsch geschrieben. Melde dich an, um nachzusehen.",
  ofOneself: (operator) => `„${operator}:“ sucht unter Eigenem: Melde dich dafür an.`,
  none: "Zurzeit ist kein Kanal für alle offen.",
};
