/** The emoji that there are, fetched when first asked for, and those that one uses. */

import {
  FIRST_USED,
  renamed,
  TONES,
  used,
  type Emoji,
  type Tone,
  type UnicodeEmoji,
} from "../data/emoji";
import { Remembered } from "./localSettings.svelte";
import type { Store } from "./store.svelte";

const KEPT = "tertulia.emoji";

class EmojiBook {
  /** Every Unicode emoji; empty until it is there. */
  all = $state.raw<readonly UnicodeEmoji[]>([]);
  lately = $state.raw<readonly Emoji[]>(kept());
  #tone = new Remembered<number>("skin tone", 0);
  #asked: Promise<void> | null = null;

  /** Fetch the names once. */
  load(store: Store): Promise<void> {
    this.#asked ??= this.#fetch(String(store.realm["server_emoji_data_url"] ?? "")).catch(
      (error: unknown) => {
        this.#asked = null;
        throw error;
      },
    );
    return this.#asked;
  }

  /** One was used: it is offered sooner from now on. */
  use(emoji: Emoji): void {
    this.lately = used(this.lately, emoji);
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.lately));
    } catch {
      // Without a memory there is no order of one's own.
    }
  }

  /** The skin tone that one writes emoji in. */
  get tone(): Tone {
    return TONES[this.#tone.value] ?? "";
  }

  set tone(tone: Tone) {
    this.#tone.value = TONES.indexOf(tone);
  }

  /** The six or so that are offered at once. */
  get offered(): readonly Emoji[] {
    const rest = FIRST_USED.filter((one) => !this.lately.some((other) => other.code === one.code));
    return [...this.lately, ...rest];
  }

  async #fetch(address: string): Promise<void> {
    // By its path alone: what runs before the server asks the same place.
    const { pathname, search } = new URL(address, window.location.href);
    const answer = await fetch(pathname + search);
    const { code_to_names } = (await answer.json()) as { code_to_names: Record<string, string[]> };
    this.all = Object.entries(code_to_names).map(([code, names]) => ({ code, names }));
    this.lately = renamed(this.lately, this.all);
  }
}

function kept(): readonly Emoji[] {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "[]") as Emoji[];
  } catch {
    return [];
  }
}

export const emojiBook = new EmojiBook();
