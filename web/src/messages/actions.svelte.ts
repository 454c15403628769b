/** The actions of messages, shared by action bar, menu, shortcuts, and dialogs. The compose part
 * provides some of them when it's loaded. */

import type { App } from "../app";
import { conversationOf } from "../data/conversations";
import type { Message } from "../data/data";
import type { Emoji } from "../data/emoji";
import { fold } from "../data/fold";
import { fragmentOf, narrowOf } from "../data/narrow";
import { pinsOf, type Pinned } from "../live/pins.svelte";
import { del, get, post, errorMessage } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import { words } from "../words/index.svelte";
import { overlays } from "./overlays.svelte";

/** Actions provided by the compose part. */
interface ProvidedActions {
  reply: (message: Message) => void;
  quote: (message: Message) => void;
  edit: (message: Message) => void;
  move: (message: Message) => void;
  remove: (message: Message) => void;
  remind: (message: Message) => void;
}

class Actions {
  #app: App | null = null;
  #provided = $state.raw<Partial<ProvidedActions>>({});

  /** Called once at startup. */
  serve(app: App): void {
    this.#app = app;
  }

  /** Register implementations. Returns a function that removes them. */
  provide(some: Partial<ProvidedActions>): () => void {
    this.#provided = { ...this.#provided, ...some };
    return () => {
      const rest = { ...this.#provided };
      for (const name of Object.keys(some) as (keyof ProvidedActions)[]) {
        if (rest[name] === some[name]) delete rest[name];
      }
      this.#provided = rest;
    };
  }

  has(name: keyof ProvidedActions): boolean {
    return name in this.#provided;
  }

  startReply = (message: Message) => this.#provided.reply?.(message);
  quote = (message: Message) => this.#provided.quote?.(message);
  edit = (message: Message) => this.#provided.edit?.(message);
  move = (message: Message) => this.#provided.move?.(message);
  remove = (message: Message) => this.#provided.remove?.(message);
  remind = (message: Message) => this.#provided.remind?.(message);

  showHistory = (message: Message) => overlays.open({ kind: "history", messageId: message.id });
  showReceipts = (message: Message) => overlays.open({ kind: "receipts", messageId: message.id });

  /** Set a reminder for tomorrow morning. */
  async followUp(message: Message): Promise<void> {
    const app = this.#served;
    try {
      const { followUp } = await words.with(import("./followUp"), "later");
      await followUp(app, message);
    } catch (error) {
      app.toasts.error(errorMessage(error));
    }
  }

  async star(message: Message): Promise<void> {
    const op = message.flags.includes("starred") ? "remove" : "add";
    const done = (outcome: string) =>
      ({
        type: "update_message_flags",
        op: outcome,
        flag: "starred",
        messages: [message.id],
      }) as const;
    await this.#optimistically(done(op), done(op === "add" ? "remove" : "add"), () =>
      post("/messages/flags", { messages: [message.id], op, flag: "starred" }),
    );
  }

  /** Pin or unpin a message for everyone in its channel. Returns whether it's in that state. */
  pin(pinned: Pinned, isPinned: boolean): Promise<boolean> {
    const { store, toasts } = this.#served;
    const { wasPinned, wasUnpinned } = words.messages.pins;
    const done = pinsOf(store).set(pinned, isPinned);
    return toasts.attempt(
      done.then((isNew) => isNew || toasts.info(isPinned ? wasPinned : wasUnpinned)),
    );
  }

  /** Add or remove the user's reaction. */
  async react(message: Message, emoji: Emoji): Promise<void> {
    const { me } = this.#served.store;
    const { name: emoji_name, code: emoji_code, type: reaction_type } = emoji;
    const reacted = message.reactions.some(
      (reaction) =>
        reaction.user_id === me &&
        reaction.emoji_code === emoji_code &&
        reaction.reaction_type === reaction_type,
    );
    const reaction = { emoji_name, emoji_code, reaction_type };
    const event = (op: string) => ({
      type: "reaction",
      op,
      message_id: message.id,
      user_id: me,
      ...reaction,
    });
    const path = `/messages/${message.id}/reactions`;
    if (reacted) {
      await this.#optimistically(event("remove"), event("add"), () => del(path, reaction));
    } else {
      await this.#optimistically(event("add"), event("remove"), () => post(path, reaction));
    }
  }

  /** The fragment of the message in its conversation. */
  addressOf(message: Message): string {
    const { store } = this.#served;
    const narrow = narrowOf(conversationOf(message.key, store.topicNames));
    return `#${fragmentOf(narrow, store, message.id)}`;
  }

  /** The full URL. */
  linkTo(message: Message): string {
    const { realm } = this.#served.store;
    return `${String(realm["realm_url"] ?? window.location.origin)}/${this.addressOf(message)}`;
  }

  copyLink = (message: Message) => this.copy(this.linkTo(message), words.messages.linkCopied);

  /** Copy the Markdown source. */
  async copySource(message: Message): Promise<void> {
    try {
      const { raw_content } = await get<{ raw_content: string }>(`/messages/${message.id}`, {
        apply_markdown: false,
        allow_empty_topic_name: true,
      });
      await this.copy(raw_content, words.messages.textCopied);
    } catch (error) {
      this.#served.toasts.error(errorMessage(error));
    }
  }

  async copy(text: string, success: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.#served.toasts.info(success);
    } catch {
      this.#served.toasts.error(words.messages.notCopied);
    }
  }

  get #served(): App {
    if (!this.#app) throw new Error("Nobody is served yet.");
    return this.#app;
  }

  /** Apply optimistically, and roll back if the server refuses. */
  async #optimistically(
    event: Record<string, unknown> & { type: string },
    back: Record<string, unknown> & { type: string },
    ask: () => Promise<unknown>,
  ): Promise<void> {
    const { store, toasts } = this.#served;
    const take = (other: typeof event) =>
      store.change((data) => fold(data, [{ id: 0, ...other } as ServerEvent]));
    take(event);
    if (!(await toasts.attempt(ask()))) take(back);
  }
}

export const messageActions = new Actions();
