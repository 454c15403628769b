/** What can be done with messages that is writing: answering, quoting, editing, moving, … */

import type { App } from "../app";
import { conversationOf, keyOf, type Conversation } from "../data/conversations";
import type { Message } from "../data/data";
import { quotation } from "../data/quoting";
import { channelIn, conversationIn, fragmentOf, narrowOf } from "../data/narrow";
import { actions } from "../messages/actions.svelte";
import { register } from "../shell/shortcuts";
import { sourceOf } from "../live/source";
import { told } from "../wire/http";
import { words } from "../words/index.svelte";
import { composing } from "./composing.svelte";
import { dialogs } from "./dialogs.svelte";
import { editing } from "./editing.svelte";

/** Offer them where messages are shown, and by the keyboard. Returns how to take them back. */
export function provideWriting(app: App): () => void {
  return actions.provide({
    reply: (message) => composing.in(conversationFor(app, message)),
    quote: (message) => quote(app, message),
    edit: (message) => void editing.begin(app, message),
    move: (message) => dialogs.open({ kind: "move", message }),
    remove: (message) => dialogs.open({ kind: "remove", message }),
    remind: (message) => dialogs.open({ kind: "remind", message }),
  });
}

function conversationFor(app: App, message: Message): Conversation {
  return message.type === "stream"
    ? { kind: "topic", channelId: message.stream_id ?? 0, topic: message.subject }
    : conversationOf(message.key, app.store.topicNames);
}

/** The keys for writing, wherever one is. Returns how to take them back. */
export function registerKeys(app: App): () => void {
  /** In the conversation that is shown; elsewhere the key is for others. */
  const here = () => {
    const { route } = app.router;
    const shown = route.view === "narrow" ? conversationIn(route.narrow) : null;
    if (!shown) return false;
    composing.in(shown);
    return true;
  };
  return register({
    c: () => begin(() => composing.topic(channelHere(app))),
    x: () => begin(() => composing.direct()),
    r: here,
    Enter: here,
    ArrowLeft: () => editLast(app),
  });
}

/** Begin a message, unless one is begun: that one is gone on with. */
function begin(anew: () => void): void {
  if (composing.isBegun) composing.box?.focus();
  else anew();
}

/** The channel that is shown, or that of the topic that is shown. */
export function channelHere({ router: { route } }: App): number | null {
  if (route.view === "topics") return route.channelId;
  return route.view === "narrow" ? channelIn(route.narrow) : null;
}

/** Edit one's newest message of the conversation that is shown. */
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

/** Take a message that has not gone, or could not be sent, back into the box. */
export function takeBack(app: App, localId: string): void {
  const { outbox, toasts } = app;
  const failed = outbox.pending.find((one) => one.localId === localId)?.state === "failed";
  const pending = failed ? outbox.discard(localId) : outbox.undo(localId);
  if (!pending) {
    toasts.note(words.media.tooLate);
    return;
  }
  const { to, content } = pending;
  // To a channel that is not there for oneself any more nothing is written: it goes somewhere else.
  if (to.kind === "topic" && !app.store.data.channels.has(to.channelId)) {
    composing.open({ kind: "topic", topic: to.topic, content });
  } else composing.takeIn(to, content);
}

/** Quote a message, or what is selected of it, where it was said. */
export function quote(app: App, message: Message): void {
  // Asked for first: what is selected is not any more once the box has the focus.
  const asked = quoted(app, message);
  composing.with(conversationFor(app, message), async (box) => {
    const text = await asked;
    // Whoever has gone elsewhere meanwhile writes something else.
    if (text !== null && composing.shows(box)) box.quote(text);
  });
}

/** Quote a message somewhere else. */
export async function forward(app: App, message: Message): Promise<void> {
  const text = await quoted(app, message);
  if (text !== null) composing.open({ kind: "topic", content: `${text}\n` });
}

async function quoted(app: App, message: Message): Promise<string | null> {
  // Before anything is asked: what is selected now.
  const selected = selectionIn(message.id);
  try {
    const text = selected || (await sourceOf(message.id));
    return quotation(
      {
        senderId: message.sender_id,
        senderName: app.store.users.get(message.sender_id)?.full_name ?? message.sender_full_name,
        text,
        link: linkTo(app, message),
      },
      (mention, link) => words.compose.said({ mention, link }),
    );
  } catch (error) {
    app.toasts.trouble(told(error));
    return null;
  }
}

/** The message's address, in its conversation. */
function linkTo(app: App, message: Message): string {
  const { store } = app;
  const narrow = narrowOf(conversationFor(app, message));
  const home = String(store.realm["realm_url"] ?? window.location.origin);
  return `${home}/#${fragmentOf(narrow, store.data, message.id)}`;
}

/** What is selected on the page, when it is of that message alone. */
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
