import { common } from "./common";
import { compose } from "./compose";
import { media } from "./media";
import { messages } from "./messages";
import { shell } from "./shell";
import { views } from "./views";

/** What is said from the start. */
export const first = { common, shell, views, messages, compose, media };

/** What comes with the views that say it. */
export const later = {
  settings: async () => (await import("./settings")).settings,
  manage: async () => (await import("./manage")).manage,
  visit: async () => (await import("./visit")).visit,
};

/** In any language: the same names, other texts. */
export type Words = typeof first;

export type LaterWords = {
  [Part in keyof typeof later]: Awaited<ReturnType<(typeof later)[Part]>>;
};

export type AllWords = Words & LaterWords;

/** What a language has. */
export interface Language {
  first: Words;
  later: { [Part in keyof LaterWords]: () => Promise<LaterWords[Part]> };
}
