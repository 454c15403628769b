/** Everything that the client says, in one's language. */

import { untrack } from "svelte";
import { listFormat } from "../data/formats";
import { first, later } from "./compiled/en";
import { LANGUAGES } from "./languages";
import type { Language, LaterWords, Words } from "./parts";

type Part = keyof LaterWords;

class Speech {
  #from: Language = { first, later };
  #first = $state.raw<Words>(first);
  #later = $state.raw<Partial<LaterWords>>({});
  /** The language that was asked for last: it may be on its way. */
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
  get visit() {
    return this.#part("visit");
  }

  #part<Name extends Part>(name: Name): LaterWords[Name] {
    const part = this.#later[name];
    if (!part) throw new Error(`Whatever says words of "${name}" is to be loaded by words.with.`);
    return part;
  }

  /**
   * Speak the language of a tag such as `es-MX`; English where it is not known. All that is to be
   * seen changes at once.
   *
   * Raises what importing does: then it goes on in the language before.
   */
  async speak(tag: string): Promise<void> {
    const base = tag.toLowerCase().split(/[-_]/)[0] ?? "";
    const language = base in LANGUAGES ? base : "en";
    this.#wanted = language;
    const from = await LANGUAGES[language]!();
    let parts: Partial<LaterWords> = {};
    for (;;) {
      // More may have come in the language before while these were fetched.
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

  /**
   * What is imported, once the words of these parts are there too: a view is never without its
   * words. Raises what importing does.
   */
  async with<Loaded>(loading: Promise<Loaded>, ...parts: Part[]): Promise<Loaded> {
    // Where it is awaited in a component nothing here makes it load again.
    await untrack(() => Promise.all([loading, this.#fetch(parts)]));
    return loading;
  }

  async #fetch(parts: Part[]): Promise<void> {
    for (;;) {
      const from = this.#from;
      const missing = parts.filter((name) => !this.#later[name]);
      if (!missing.length) return;
      const news = await fetched(from, missing);
      if (from === this.#from) this.#later = { ...this.#later, ...news };
    }
  }
}

function namesOf(parts: Partial<LaterWords>): Part[] {
  return Object.keys(parts) as Part[];
}

async function fetched(from: Language, parts: Part[]): Promise<Partial<LaterWords>> {
  const found = await Promise.all(parts.map(async (name) => [name, await from.later[name]()]));
  return Object.fromEntries(found) as Partial<LaterWords>;
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
  return listFormat(words.language).format(apart);
}
