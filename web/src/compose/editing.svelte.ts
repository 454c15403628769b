/** The message being edited. Outlives its row, since rows are virtual. */

import type { Component } from "svelte";
import type { App } from "../app";
import { permissionToEdit } from "../data/permissions";
import { conversationOf, type Conversation, moveTarget } from "../data/conversations";
import type { Message } from "../data/data";
import { narrowOf } from "../data/narrow";
import { shownElement } from "../ui/dom";
import { messageSource } from "../live/messages";
import { topicOfMessage } from "../live/movedTopics";
import { bufferTyping } from "../ui/typeAhead";
import { del, isTransient, patch, post, ApiError, errorMessage } from "../wire/http";
import { changedMessageIds } from "../wire/events";
import { words } from "../words/index.svelte";
import { composing } from "./composing.svelte";
import { Composition } from "./composition.svelte";
import { isUploading, isSavable, offerUnsaved } from "./saving";

export interface Edit {
  message: Message;
  /** Its editor, loaded on first use. */
  view: Component<{ edit: Edit }>;
  /** Its last known conversation. */
  place: Conversation;
  composition: Composition;
  /** The original Markdown. */
  before: string;
  /** The original as the box shows it. */
  untouched: string;
  /** When editing closes, in seconds; null: never. */
  until: number | null;
}

const TYPING_EVERY = 10_000;

class Editing {
  current = $state.raw<Edit | null>(null);
  saving = $state(false);
  #notifiedAt = 0;
  /** The message requested last, whose source may be loading. */
  #asked = 0;
  #unfollow = () => {};

  async begin(app: App, message: Message): Promise<void> {
    if (this.current?.message.id === message.id) {
      this.current.composition.focusEnd();
      return;
    }
    const leave = permissionToEdit(app.store.data, message, Date.now() / 1000);
    if ("refused" in leave) {
      app.toasts.info(words.compose.cannotEdit[leave.refused]);
      return;
    }
    this.#asked = message.id;
    const typed = bufferTyping(() => (this.#asked = 0));
    try {
      const [before, view] = await Promise.all([
        messageSource(message.id),
        import("./EditInPlace.svelte").then(
          (part) => part.default,
          () => Promise.reject(new Error(words.compose.notLoaded)),
        ),
      ]);
      // Another message was requested, or this one is already being edited.
      if (this.#asked !== message.id || this.current?.message.id === message.id) return;
      this.cancel(app);
      const composition: Composition = new Composition(before, () => this.#typed(message.id));
      const untouched = composition.content;
      const place = conversationOf(message.key, app.store.data.topicNames);
      this.#open(app, {
        ...{ message, view, place, composition, before, untouched },
        until: leave.until,
      });
      typed.ready();
    } catch (error) {
      if (this.#asked === message.id) app.toasts.error(errorMessage(error));
    } finally {
      typed.canceled();
    }
  }

  /** Cancel with an offer to resume. */
  cancel(app: App): void {
    const { current } = this;
    if (!current) return;
    this.#end(current);
    offer(app, current, () => void this.#resume(app, current));
  }

  #open(app: App, edit: Edit): void {
    this.current = edit;
    this.#unfollow = app.store.onEvent((event) => {
      if (!changedMessageIds(event).includes(edit.message.id)) return;
      edit.place = moveTarget(event) ?? edit.place;
      if (event.type !== "delete_message") return;
      this.#end(edit);
      offer(app, edit, () => continueAsNewMessage(edit));
    });
  }

  #end(current: Edit): void {
    this.#unfollow();
    current.composition.uploads.cancelAll();
    if (this.#notifiedAt) this.#notifyEditing(current.message.id, "stop");
    this.current = null;
  }

  async #resume(app: App, edit: Edit): Promise<void> {
    const { id } = edit.message;
    const isShown = () => shownElement(`article[data-message="${id}"]`) !== undefined;
    if (!isShown()) {
      // The message may have moved.
      try {
        edit.place = (await topicOfMessage(id)) ?? edit.place;
      } catch (error) {
        if (!isTransient(error)) {
          continueAsNewMessage(edit);
          return;
        }
      }
    }
    this.cancel(app);
    this.#open(app, edit);
    if (!isShown()) app.router.toNarrow(narrowOf(edit.place), id);
  }

  async save(app: App): Promise<void> {
    const { current } = this;
    if (!current || this.saving) return;
    const { message, composition, before, untouched } = current;
    const content = composition.content;
    if (content === untouched) {
      this.#end(current);
      return;
    }
    if (!isSavable(app.store, composition) || isUploading(app.toasts, composition)) return;
    this.saving = true;
    try {
      const { detached_uploads: left } = await patch<{
        detached_uploads: { id: number; name: string }[];
      }>(`/messages/${message.id}`, { content, prev_content_sha256: await sha256(before) });
      if (this.current === current) this.#end(current);
      for (const file of left) this.#offerToDelete(app, file);
    } catch (error) {
      if (error instanceof ApiError && error.code === "EXPECTATION_MISMATCH") {
        app.toasts.error(words.compose.editedElsewhere);
      } else app.toasts.error(errorMessage(error));
    } finally {
      this.saving = false;
    }
  }

  #offerToDelete(app: App, file: { id: number; name: string }): void {
    app.toasts.info(words.compose.fileUnlinked({ name: file.name }), {
      label: words.common.delete,
      run: () => void app.toasts.attempt(del(`/attachments/${file.id}`)),
    });
  }

  #typed(messageId: number): void {
    if (Date.now() - this.#notifiedAt < TYPING_EVERY) return;
    this.#notifiedAt = Date.now();
    this.#notifyEditing(messageId, "start");
  }

  #notifyEditing(messageId: number, op: "start" | "stop"): void {
    if (op === "stop") this.#notifiedAt = 0;
    // Best effort.
    post(`/messages/${messageId}/typing`, { op }).catch(() => {});
  }
}

/** The message was deleted: continue as a new message. */
function continueAsNewMessage({ place, composition: { content } }: Edit): void {
  composing.takeIn(place, content);
}

/** Offer to resume an unsaved edit. */
function offer({ toasts }: App, { composition, untouched }: Edit, run: () => void): void {
  if (composition.content !== untouched) offerUnsaved(toasts, run);
}

async function sha256(text: string): Promise<string | undefined> {
  // Insecure contexts have no digests: the server then skips the comparison.
  if (!("subtle" in crypto)) return undefined;
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const editing = new Editing();
