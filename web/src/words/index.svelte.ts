/** All texts in the user's language. */

import { untrack } from "svelte";
import { listFormat } from "../data/times";
import { first, later } from "./compiled/en";
import { LANGUAGES } from "./languages";
import type { Language, LaterWords, Words } from "./parts";

type Part = keyof LaterWords;

class Texts {
  #from: Language = { first, later };
  #first = $state.raw<Words>(first);
  #later = $state.raw<Partial<LaterWords>>({});
  /** The language requested last, which may still be loading. */
  #wanted = "en";
  language = $state("en");

  get common() {
    return this.#first.common;
  }
  get shell() {
    return this.#first.shell;
  }
  get views() {
    return this.#first.views;
  }
  get messages() {
    return this.#first.messages;
  }
  get compose() {
    return this.#first.compose;
  }
  get media() {
    return this.#first.media;
  }
  get settings() {
    return this.#part("settings");
  }
  get manage() {
    return this.#part("manage");
  }
  get catchUp() {
    return this.#part("catchUp");
  }
  get status() {
    return this.#part("status");
  }
  get voice() {
    return this.#part("voice");
  }
  get visit() {
    return this.#part("visit");
  }
  get files() {
    return this.#part("files");
  }
  get inbox() {
    return this.#part("inbox");
  }
  get keys() {
    return this.#part("keys");
  }
  get later() {
    return this.#part("later");
  }

  #part<Name extends Part>(name: Name): LaterWords[Name] {
    const part = this.#later[name];
    if (!part) throw new Error(`Whatever says words of "${name}" is to be loaded by words.with.`);
    return part;
  }

  /** Switch to the language of a tag such as `es-MX`; English if it isn't supported. All visible
   * texts change at the same time. If loading fails, throws and keeps the previous language. */
  async speak(tag: string): Promise<void> {
    const base = tag.toLowerCase().split(/[-_]/)[0] ?? "";
    const language = base in LANGUAGES ? base : "en";
    this.#wanted = language;
    const from = await LANGUAGES[language]!();
    let parts: Partial<LaterWords> = {};
    for (;;) {
      // Further parts may have been loaded in the meantime.
      const missing = namesOf(this.#later).filter((name) => !parts[name]);
      if (!missing.length) break;
      parts = { ...parts, ...(await fetched(from, missing)) };
    }
    if (this.#wanted !== language) return;
    this.#from = from;
    this.#first = from.first;
    this.#later = parts;
    this.language = language;
    document.documentElement.lang = language;
  }

  /** Wait for an import and for the texts that it needs, so that a view never appears without them.
   * Throws import errors. */
  async with<Loaded>(loading: Promise<Loaded>, ...parts: Part[]): Promise<Loaded> {
    // Await in a component must not create dependencies.
    await untrack(() => Promise.all([loading, this.#fetch(parts)]));
    return loading;
  }

  async #fetch(parts: Part[]): Promise<void> {
    for (;;) {
      const from = this.#from;
      const missing = parts.filter((name) => !this.#later[name]);
      if (!missing.length) return;
      const loadedParts = await fetched(from, missing);
      if (from === this.#from) this.#later = { ...this.#later, ...loadedParts };
    }
  }
}

function namesOf(texts: Partial<LaterWords>): Part[] {
  return Object.keys(texts) as Part[];
}

async function fetched(from: Language, parts: Part[]): Promise<Partial<LaterWords>> {
  const loaded = await Promise.all(parts.map(async (name) => [name, await from.later[name]()]));
  return Object.fromEntries(loaded) as Partial<LaterWords>;
}

export const words = new Texts();

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

const RIGHT_TO_LEFT_LANGUAGES = new Set([
  "ar",
  "dv",
  "fa",
  "he",
  "ku",
  "ps",
  "sd",
  "ug",
  "ur",
  "yi",
]);

/** A language's text direction. */
export function directionOf(language: string): "ltr" | "rtl" {
  return RIGHT_TO_LEFT_LANGUAGES.has(language.split(/[-_]/)[0] ?? "") ? "rtl" : "ltr";
}

/** "a, b and c" in the user's language. */
export function listed(items: string[]): string {
  return inOrder(items, (apart) => listFormat(words.language).format(apart));
}

/** Join names so that they're read in the order of the user's language. If a name is right-to-left,
 * names are wrapped in invisible Unicode isolates. `dir="auto"` looks into isolates, so an invisible
 * mark of the language's direction comes first. */
export function inOrder(items: string[], join: (items: string[]) => string): string {
  const isMixed = items.length > 1 && items.some((item) => RIGHT_TO_LEFT.test(item));
  if (!isMixed) return join(items);
  const mark = directionOf(words.language) === "rtl" ? "\u200f" : "\u200e";
  return mark + join(items.map((item) => `\u2068${item}\u2069`));
}
