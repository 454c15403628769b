/** The types of the texts. English is the language that the others are compared with. */

import type { first, later } from "./compiled/en";

/** Texts of the first view. */
export type Words = typeof first;

/** Texts that are loaded with the views that need them. */
export type LaterWords = {
  [Part in keyof typeof later]: Awaited<ReturnType<(typeof later)[Part]>>;
};

export type AllWords = Words & LaterWords;

export interface Language {
  first: Words;
  later: { [Part in keyof LaterWords]: () => Promise<LaterWords[Part]> };
}
