/** Keyboard shortcuts of a message list. */

import type { App } from "../app";
import { mayEdit, mayMove, maySeeHistory } from "../data/permissions";
import type { Message } from "../data/data";
import { THUMBS_UP } from "../data/emoji";
import { readMarkerOf } from "../live/markRead.svelte";
import { registerShortcuts } from "../shell/shortcuts";
import { shownElement } from "../ui/dom";
import { messageActions } from "./actions.svelte";
import { overlays } from "./overlays.svelte";

interface Listing {
  list: string;
  current: () => Message | undefined;
  move: (by: 1 | -1) => void;
  jump: (to: "end" | "beginning") => void;
  page: (by: 1 | -1) => void;
}

/** Returns a function that stops listening. */
export function listenToKeys(app: App, listing: Listing): () => void {
  const { store, toasts } = app;
  /** Without a selected message the key isn't handled. */
  const withCurrent = (call: (message: Message) => unknown) => () => {
    const message = listing.current();
    if (!message) return false;
    call(message);
    return true;
  };
  const now = () => Date.now() / 1000;
  return registerShortcuts({
    j: () => listing.move(1),
    ArrowDown: () => listing.move(1),
    k: () => listing.move(-1),
    ArrowUp: () => listing.move(-1),
    PageDown: () => listing.page(1),
    " ": (event) => listing.page(event.shiftKey ? -1 : 1),
    J: () => listing.page(1),
    PageUp: () => listing.page(-1),
    K: () => listing.page(-1),
    End: () => listing.jump("end"),
    G: () => listing.jump("end"),
    Home: () => listing.jump("beginning"),
    r: withCurrent(messageActions.startReply),
    Enter: withCurrent(messageActions.startReply),
    ">": withCurrent(messageActions.quote),
    e: withCurrent((message) => mayEdit(store, message, now()) && messageActions.edit(message)),
    m: withCurrent((message) => mayMove(store, message, now()) && messageActions.move(message)),
    "+": withCurrent((message) => void messageActions.react(message, THUMBS_UP)),
    ":": withCurrent((message) => {
      const row = shownElement(`article[data-message="${message.id}"]`);
      if (row) overlays.emoji(row, (emoji) => void messageActions.react(message, emoji));
    }),
    "Control+s": withCurrent((message) => void messageActions.star(message)),
    f: withCurrent((message) => void messageActions.followUp(message)),
    b: withCurrent(messageActions.remind),
    U: withCurrent((message) => {
      void toasts.attempt(readMarkerOf(store).unreadFrom(message, listing.list));
    }),
    V: withCurrent(messageActions.showReceipts),
    H: withCurrent(
      (message) => maySeeHistory(store, message) && messageActions.showHistory(message),
    ),
    L: withCurrent((message) => void messageActions.copyLink(message)),
    u: withCurrent((message) => {
      const row = shownElement(`article[data-message="${message.id}"]`);
      if (row) overlays.user(message.sender_id, row.querySelector(".side") ?? row);
    }),
    s: withCurrent((message) => {
      app.router.go(messageActions.addressOf(message).replace(/^#/, ""));
    }),
  });
}
