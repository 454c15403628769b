/** What can be done with messages that is writing: answering, quoting, editing, moving, … */

import type { App } from "../app";
import { conversationOf, keyOf, type Conversation } from "../data/conversations";
import type { Message } from "../data/data";
import { quotation } from "../data/quoting";
import { conversationIn, fragmentOf, narrowOf } from "../data/narrow";
import { actions } from "../messages/actions.svelte";
import { get, told } from "../wire/http";
import { words } from "../words/index.svelte";
import { composing } from "./composing.svelte";
import { dialogs } from "./dialogs.svelte";

/** Offer them where messages are shown, and by the keyboard. Returns how to take them back. */
export function provideWriting(app: App): () => void {
  return actions.provide({
    reply: (message) => composing.in(conversationFor(app, message)),
    quote: (message) => void quote(app, message),
    edit: (message) => {
      void import("./editing.svelte").then(({ editing }) => editing.begin(app, message));
    },
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

/** Begin a message where one is: to the channel that is shown, or to nobody yet. */
export function beginHere(app: App): void {
  const { route } = app.router;
  if (route.view === "narrow") {
    const here = conversationIn(route.narrow);
    if (here?.kind === "topic") {
      composing.topic(here.channelId, "");
      return;
    }
  }
  composing.topic();
}

/** Answer in the conversation that is shown, or begin a message. */
export function writeHere(app: App): void {
  const { route } = app.router;
  const here = route.view === "narrow" ? conversationIn(route.narrow) : null;
  if (here) composing.in(here);
  else composing.topic();
}

/** Quote a message, or what is selected of it, where it was said. */
export async function quote(app: App, message: Message): Promise<void> {
  const text = await quoted(app, message);
  if (text === null) return;
  const to = conversationFor(app, message);
  composing.in(to);
  // A box that was opened just now is there after the next drawing.
  requestAnimationFrame(() => {
    const box = composing.box;
    if (box && box.key === keyOf(to)) box.insertBlock(text);
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
      words.compose.said,
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

/** What the author typed. */
export async function sourceOf(messageId: number): Promise<string> {
  const { message } = await get<{ message: { content: string } }>(`/messages/${messageId}`, {
    apply_markdown: false,
    allow_empty_topic_name: true,
  });
  return message.content;
}

/** What is selected on the page, when it is of that message alone. */
function selectionIn(messageId: number): string {
  const selection = window.getSelection();
  if (!selection || selection.isCollapsed) return "";
  const holder = (node: Node | null) => {
    const element = node instanceof Element ? node : node?.parentElement;
    return element?.closest("[data-message-id]")?.getAttribute("data-message-id");
  };
  const id = String(messageId);
  return holder(selection.anchorNode) === id && holder(selection.focusNode) === id
    ? selection.toString().trim()
    : "";
}
