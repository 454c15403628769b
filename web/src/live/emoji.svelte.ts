/** All emoji, loaded on first use, and the user's frequent ones. */

import {
  FIRST_USED,
  withCurrentNames,
  TONES,
  withUse,
  type Emoji,
  type Tone,
  type UnicodeEmoji,
} from "../data/emoji";
import { LocalSetting } from "./storage.svelte";
import type { Store } from "./store.svelte";

const KEPT = "tertulia.emoji";

class EmojiBook {
  /** Every Unicode emoji; empty until loaded. */
  all = $state.raw<readonly UnicodeEmoji[]>([]);
  lately = $state.raw<readonly Emoji[]>(stored());
  #tone = new LocalSetting<number>("skin tone", 0);
  #asked: Promise<void> | null = null;

  load(store: Store): Promise<void> {
    this.#asked ??= this.#fetch(String(store.realm["server_emoji_data_url"] ?? "")).catch(
      (error: unknown) => {
        this.#asked = null;
        throw error;
      },
    );
    return this.#asked;
  }

  /** Record a use. */
  use(emoji: Emoji): void {
    this.lately = withUse(this.lately, emoji);
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.lately));
    } catch {
      // Without storage, usage isn't remembered.
    }
  }

  /** The user's skin tone. */
  get tone(): Tone {
    return TONES[this.#tone.value] ?? "";
  }

  set tone(tone: Tone) {
    this.#tone.value = TONES.indexOf(tone);
  }

  /** Quick reactions. */
  get offered(): readonly Emoji[] {
    const rest = FIRST_USED.filter(
      (emoji) => !this.lately.some((other) => other.code === emoji.code),
    );
    return [...this.lately, ...rest];
  }

  async #fetch(address: string): Promise<void> {
    // Only the path, so that a development proxy works.
    const { pathname, search } = new URL(address, window.location.href);
    const answer = await fetch(pathname + search);
    const { code_to_names } = (await answer.json()) as { code_to_names: Record<string, string[]> };
    this.all = Object.entries(code_to_names).map(([code, names]) => ({ code, names }));
    this.lately = withCurrentNames(this.lately, this.all);
  }
}

function stored(): readonly Emoji[] {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "[]") as Emoji[];
  } catch {
    // Without storage, usage isn't remembered.
    return [];
  }
}

export const emojiBook = new EmojiBook();
