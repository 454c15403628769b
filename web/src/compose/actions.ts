/** Message actions that involve composing: reply, quote, edit, move, and so on. */

import type { App } from "../app";
import { conversationOf, keyOf, type Conversation, type Narrow } from "../data/conversations";
import type { Message } from "../data/data";
import { quotation } from "../data/messageParts";
import { conversationIn, fragmentOf, narrowOf, ALL } from "../data/narrow";
import { messageActions } from "../messages/actions.svelte";
import { currentChannel } from "../shell/navigation";
import { register } from "../shell/shortcuts";
import { messageSource } from "../live/messages";
import { errorMessage } from "../wire/http";
import { words } from "../words/index.svelte";
import { composing } from "./composing.svelte";
import { composeDialogs } from "./dialogs.svelte";
import { editing } from "./editing.svelte";
import { conversationName } from "../data/names";
import { showsPending, type Pending } from "../data/sending";

/** Register the actions. Returns a function that removes them. */
export function provideComposeActions(app: App): () => void {
  return messageActions.provide({
    reply: (message) => composing.in(conversationFor(app, message)),
    quote: (message) => quote(app, message),
    edit: (message) => void editing.begin(app, message),
    move: (message) => composeDialogs.open({ kind: "move", message }),
    remove: (message) => composeDialogs.open({ kind: "remove", message }),
    remind: (message) => composeDialogs.open({ kind: "remind", message }),
  });
}

function conversationFor(app: App, message: Message): Conversation {
  return message.type === "stream"
    ? { kind: "topic", channelId: message.stream_id ?? 0, topic: message.subject }
    : conversationOf(message.key, app.store.topicNames);
}

/** Register the keyboard shortcuts. Returns a function that removes them. */
export function registerKeys(app: App): () => void {
  /** Only in a conversation; elsewhere the key isn't handled. */
  const openConversation = () => {
    const { route } = app.router;
    const shown = route.view === "narrow" ? conversationIn(route.narrow) : null;
    if (!shown) return false;
    composing.in(shown);
    return true;
  };
  return register(
    {
      c: () => startOrContinue(() => composing.topic(currentChannel(app.router.route))),
      x: () => startOrContinue(() => composing.direct()),
      r: openConversation,
      Enter: openConversation,
      ArrowLeft: () => editLast(app),
    },
    { general: true },
  );
}

/** Start a message, or continue the one that is open. */
function startOrContinue(start: () => void): void {
  if (composing.isBegun) composing.box?.focus();
  else start();
}

/** Edit the user's newest message in the conversation in view. */
export function editLast(app: App): boolean {
  const { route } = app.router;
  const shown = route.view === "narrow" ? conversationIn(route.narrow) : null;
  if (!shown) return false;
  const key = keyOf(shown);
  const { store } = app;
  let last: Message | null = null;
  for (const message of store.data.messages.values()) {
    const isMine = message.key === key && message.sender_id === store.data.me;
    if (isMine && message.id > (last?.id ?? 0)) last = message;
  }
  if (!last) return false;
  void editing.begin(app, last);
  return true;
}

/** Return an unsent or failed message to the compose box. */
export function undoSending(app: App, localId: string): void {
  const { outbox, toasts } = app;
  const failed = outbox.pending.find((message) => message.localId === localId)?.state === "failed";
  const pending = failed ? outbox.discard(localId) : outbox.undo(localId);
  if (!pending) {
    toasts.info(words.media.tooLate);
    return;
  }
  const { to, content } = pending;
  // The channel is no longer accessible: let the user choose another.
  if (to.kind === "topic" && !app.store.data.channels.has(to.channelId)) {
    composing.open({ kind: "topic", topic: to.topic, content });
  } else composing.takeIn(to, content);
}

/** Quote a message, or the selected part of it, in its conversation. */
export function quote(app: App, message: Message): void {
  // Before the box takes the focus, which clears the selection.
  const announcePending = quoted(app, message);
  composing.with(conversationFor(app, message), async (box) => {
    const text = await announcePending;
    // The user may have navigated in the meantime.
    if (text !== null && composing.shows(box)) box.quote(text);
  });
}

/** Quote a message in a new message. */
export async function forward(app: App, message: Message): Promise<void> {
  const text = await quoted(app, message);
  if (text !== null) composing.open({ kind: "topic", content: `${text}\n` });
}

async function quoted(app: App, message: Message): Promise<string | null> {
  // Read the selection before anything asynchronous.
  const selected = selectionIn(message.id);
  try {
    const text = selected || (await messageSource(message.id));
    return quotation(
      {
        senderId: message.sender_id,
        senderName: app.store.users.get(message.sender_id)?.full_name ?? message.sender_full_name,
        text,
        link: linkTo(app, message),
      },
      (mention, link) => words.compose.quoteHeader({ mention, link }),
    );
  } catch (error) {
    app.toasts.error(errorMessage(error));
    return null;
  }
}

/** The message's permanent link. */
function linkTo(app: App, message: Message): string {
  const { store } = app;
  const narrow = narrowOf(conversationFor(app, message));
  const home = String(store.realm["realm_url"] ?? window.location.origin);
  return `${home}/#${fragmentOf(narrow, store.data, message.id)}`;
}

/** The selected text, if the selection is within the message. */
function selectionIn(messageId: number): string {
  const selection = window.getSelection();
  if (!selection || selection.isCollapsed) return "";
  const holder = (node: Node | null) => {
    const element = node instanceof Element ? node : node?.parentElement;
    return element?.closest("[data-message]")?.getAttribute("data-message");
  };
  const id = String(messageId);
  return holder(selection.anchorNode) === id && holder(selection.focusNode) === id
    ? selection.toString().trim()
    : "";
}

/** Returns a function to call with all pending messages after each change. */
export function announcePending(app: App): (pending: readonly Pending[]) => void {
  let errorMessage = new Set<string>();
  return (pending) => {
    const before = errorMessage;
    errorMessage = new Set();
    for (const message of pending) {
      const quote = newsOf(message);
      if (!quote || errorMessage.has(quote)) continue;
      errorMessage.add(quote);
      if (!before.has(quote)) announce(app, message);
    }
  };
}

/** A key for each announcement, so that it's made once. */
function newsOf({ localId, key, state, redirected, due }: Pending): string | null {
  if (state === "failed") return `failed ${localId}`;
  return redirected && due !== undefined ? `goes to ${key}` : null;
}

function announce({ store, router, toasts }: App, { key, to, state, error }: Pending): void {
  const shown = shownIn(router.route);
  const isSeen = shown !== null && showsPending(shown, key);
  const name = conversationName(store.users, store.channels, to, store.me);
  if (state !== "failed") {
    const action = {
      label: words.compose.view,
      run: () => router.toNarrow(narrowOf(to)),
    };
    toasts.info(words.messages.topicMovedTo({ where: name }), isSeen ? undefined : action);
  } else if (!isSeen) {
    toasts.offer(words.messages.notSentTo({ where: name, why: error ?? "" }), {
      label: words.messages.show,
      run: () => router.go("drafts"),
    });
  }
}

function shownIn(route: App["router"]["route"]): Narrow | null {
  if (route.view === "narrow") return route.narrow;
  return route.view === "feed" ? ALL : null;
}
