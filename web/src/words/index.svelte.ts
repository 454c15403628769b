/** Everything that the client says, in one's language. */

import { en, type Words } from "./en";

const LANGUAGES: Record<string, () => Promise<Words>> = {
  de: () => import("./de").then((module) => module.de),
  en: () => Promise.resolve(en),
  es: () => import("./es").then((module) => module.es),
};

/** The languages that there are, as they call themselves. */
export const LANGUAGE_NAMES: Record<string, string> = {
  de: "Deutsch",
  en: "English",
  es: "Español",
};

class Speech {
  #words = $state.raw<Words>(en);
  language = $state("en");

  get common() {
    return this.#words.common;
  }
  get shell() {
    return this.#words.shell;
  }
  get views() {
    return this.#words.views;
  }
  get messages() {
    return this.#words.messages;
  }
  get compose() {
    return this.#words.compose;
  }
  get media() {
    return this.#words.media;
  }
  get settings() {
    return this.#words.settings;
  }
  get manage() {
    return this.#words.manage;
  }

  /** Speak the language of a tag such as `es-MX`; English where it is not known. */
  async speak(tag: string): Promise<void> {
    const base = tag.toLowerCase().split(/[-_]/)[0] ?? "";
    const language = base in LANGUAGES ? base : "en";
    this.#words = await (LANGUAGES[language] ?? LANGUAGES["en"]!)();
    this.language = language;
    document.documentElement.lang = language;
  }
}

export const words = new Speech();

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

/**
 * "a, b and c" in one's language. Where some of them are written from right to left, each is set
 * apart (by Unicode's isolates, which are not seen), so that they do not take each other's place.
 */
export function listed(items: string[]): string {
  const isMixed = items.length > 1 && items.some((item) => RIGHT_TO_LEFT.test(item));
  const apart = isMixed ? items.map((item) => `\u2068${item}\u2069`) : items;
  return new Intl.ListFormat(words.language).format(apart);
}
