/** Types of the texts, taken from English. */

import type { first, later } from "./compiled/en";

/** Texts of the first view. */
export type Words = typeof first;

/** Texts that are loaded with their views. */
export type LaterWords = {
  [Part in keyof typeof later]: Awaited<ReturnType<(typeof later)[Part]>>;
};

export type AllWords = Words & LaterWords;

export interface Language {
  first: Words;
  later: { [Part in keyof LaterWords]: () => Promise<LaterWords[Part]> };
}
