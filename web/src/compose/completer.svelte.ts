/** Suggestions while typing, and the selected one. */

import { untrack } from "svelte";
import { choices, knownOf, type Choice, type Known, tokenAt, type Token } from "../data/completion";
import type { ConversationKey } from "../data/conversations";
import { channelNarrow, fragmentOf, narrowOf } from "../data/narrow";
import { ownEmoji } from "../data/emoji";
import { normalized } from "../data/matching";
import { hasPermission } from "../data/permissions";
import { emojiBook } from "../live/emoji.svelte";
import type { Store } from "../live/store.svelte";
import { topicsOf } from "../live/topics.svelte";
import { isConverting } from "../ui/dom";
import type { Composition } from "./composition.svelte";

export class Completer {
  active = $state(0);
  /** The token dismissed with Escape, until another one begins. */
  #closed = $state.raw<string | null>(null);
  #focused = $state(false);

  readonly #token: Token | null = $derived.by(() => {
    const { text, quotes, caret } = this.composition;
    if (!this.#focused || caret < 0) return null;
    const token = tokenAt(text, caret);
    // Commands work only at the start of a message.
    return token?.kind === "command" && quotes.length ? null : token;
  });

  readonly #callable = $derived.by(() => {
    const { groups, me } = this.store;
    return new Map(
      [...groups].filter(([, group]) => hasPermission(groups, group.can_mention_group, me)),
    );
  });

  readonly #known: Known = $derived.by(() =>
    knownOf(this.store.users, this.store.channels, this.#callable),
  );

  readonly choices: Choice[] = $derived.by(() => {
    const token = this.#token;
    if (!token || this.#closed === placeOf(token)) return [];
    const scene = this.to();
    const inChannel = token.kind === "topic" ? this.#channelOf(token) : null;
    return choices(token, {
      known: this.#known,
      participants: untrack(() => this.#participants(scene.key)),
      inTopic: scene.inTopic,
      topics: inChannel === null ? [] : topicsOf(this.store).names(inChannel),
      emoji: emojiBook.all,
      ownEmoji: ownEmoji(this.store.emoji),
      usedEmoji: emojiBook.lately,
      tone: emojiBook.tone,
      me: this.store.me,
      address: (channelId, topic) => untrack(() => this.#address(channelId, topic)),
      playgrounds: this.store.playgrounds.map((playground) => playground.pygments_language),
    });
  });

  /** Whether more suggestions may follow, as users are still being loaded. */
  readonly isComing = $derived.by(() => {
    const token = this.#token;
    if (token?.kind !== "person" || this.#closed === placeOf(token)) return false;
    return this.store.peopleComing;
  });

  constructor(
    private readonly store: Store,
    private readonly composition: Composition,
    private readonly to: () => { key: ConversationKey | null; inTopic: boolean },
  ) {
    // Load data on first use.
    $effect(() => {
      const token = this.#token;
      this.active = 0;
      // If that fails, the next colon tries again.
      if (token?.kind === "emoji") emojiBook.load(store).catch(() => {});
      if (token?.kind === "topic") {
        const channelId = this.#channelOf(token);
        if (channelId !== null) untrack(() => topicsOf(store).prefetch(channelId));
      }
      if (!token) this.#closed = null;
    });
  }

  focused(is: boolean): void {
    this.#focused = is;
  }

  /** Handle a key. Returns whether it was used. */
  key(event: KeyboardEvent): boolean {
    const { length } = this.choices;
    if (isConverting(event) || (!length && !(this.isComing && event.key === "Escape")))
      return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return false;
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.active = (this.active + step + length) % length;
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
      if (event.ctrlKey || event.metaKey || event.altKey) return false;
      this.choose(this.active);
    } else if (event.key === "Escape") {
      const token = this.#token;
      this.#closed = token && placeOf(token);
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  choose(at: number): void {
    const choice = this.choices[at];
    const token = this.#token;
    if (!choice || !token) return;
    if (choice.kind === "emoji") emojiBook.use(choice.emoji);
    this.composition.apply(({ text }) => {
      const after = text.slice(token.end);
      // Avoid a double space.
      const put =
        choice.text.endsWith(" ") && /^\s/.test(after) ? choice.text.slice(0, -1) : choice.text;
      const fence = choice.kind === "language" && choice.text.endsWith("\n");
      const closing = fence && !after.trim() ? `\n${signBefore(text, token.start)}` : "";
      const caret = token.start + put.length;
      return {
        text: text.slice(0, token.start) + put + closing + after,
        start: caret,
        end: caret,
      };
    });
  }

  #channelOf(token: Token): number | null {
    const needle = normalized(token.channel ?? "");
    return this.#known.channels.find((known) => known.plain === needle)?.channel.stream_id ?? null;
  }

  #address(channelId: number, topic?: string): string {
    const narrow =
      topic === undefined
        ? channelNarrow(channelId)
        : narrowOf({ kind: "topic", channelId, topic });
    return `#${fragmentOf(narrow, this.store.data)}`;
  }

  /** Recent senders of the conversation, newest first, then its other participants. */
  #participants(key: ConversationKey | null): number[] {
    const { messages, directs } = this.store;
    const ids: number[] = [];
    const all = [...messages.values()].filter((message) => message.key === key);
    all.sort((a, b) => b.id - a.id);
    for (const message of all.slice(0, 200)) {
      if (!ids.includes(message.sender_id)) ids.push(message.sender_id);
    }
    if (key?.startsWith("d")) ids.push(...key.slice(1).split(",").map(Number));
    const latest = [...directs].sort((a, b) => b[1] - a[1]).slice(0, 20);
    for (const [direct] of latest) {
      const people = direct.slice(1).split(",").map(Number);
      if (people.length === 1) ids.push(...people);
    }
    return [...new Set(ids)];
  }
}

function placeOf(token: Token): string {
  return `${token.kind}${token.start}`;
}

/** The fence before a code language. */
function signBefore(text: string, at: number): string {
  return /(`{3,}|~{3,})[ \t]*$/.exec(text.slice(0, at))?.[1] ?? "```";
}
