/**
 * The desktop application that the client may run in (Zulip's): it has a badge, a name and a picture
 * for each organization, notes that can be answered, a menu, and knows when the machine is idle.
 */

import type { App } from "../app";
import { conversationOf } from "../data/conversations";
import { narrowOf } from "../data/narrow";
import { told } from "../wire/http";

type Listener = (...told: never[]) => void;

/** What the application puts into the page. Not every version has all of it. */
export interface Bridge {
  send_event(name: string, ...told: unknown[]): unknown;
  on_event(name: string, listener: Listener): void;
  new_notification?(
    title: string,
    how: NotificationOptions,
    dispatch: (type: string, event: EventInit) => boolean,
  ): { close(): void };
  get_idle_on_system?(): boolean;
  get_last_active_on_system?(): number;
  set_send_notification_reply_message_supported?(isSupported: boolean): void;
}

export function desktop(): Bridge | null {
  return (globalThis as { electron_bridge?: Bridge }).electron_bridge ?? null;
}

/** Whether somebody is at the machine, and when they last were; null where that is not known. */
export function systemInput(bridge = desktop()): { isIdle: boolean; at: number } | null {
  if (!bridge?.get_idle_on_system || !bridge.get_last_active_on_system) return null;
  return { isIdle: bridge.get_idle_on_system(), at: bridge.get_last_active_on_system() };
}

/** A note of the application's own; null where it shows none. Clicking calls `onclick`. */
export function desktopNote(
  title: string,
  how: NotificationOptions,
  onclick: () => void,
  bridge = desktop(),
): { close(): void } | null {
  if (!bridge?.new_notification) return null;
  const note = bridge.new_notification(title, how, (type) => {
    if (type !== "click") return true;
    onclick();
    note.close();
    return true;
  });
  return note;
}

/** What the application's menu and notes ask for. */
export interface Asked {
  signOut(): void;
  showKeys(): void;
  showNoticeSettings(): void;
  answer(messageId: number, text: string): Promise<void>;
}

/** Listen to the application; the answer ends it. (What was begun there cannot be: it falls silent.) */
export function obey(asked: Asked, bridge = desktop()): () => void {
  if (!bridge) return () => undefined;
  let isOver = false;
  const on = (name: string, listener: (...told: never[]) => void) =>
    bridge.on_event(name, (...rest: never[]) => isOver || listener(...rest));
  on("logout", () => asked.signOut());
  on("show-keyboard-shortcuts", () => asked.showKeys());
  on("show-notification-settings", () => asked.showNoticeSettings());
  on("send_notification_reply_message", (messageId: unknown, text: unknown) => {
    const id = Number(messageId);
    void asked.answer(id, String(text)).catch((error: unknown) => {
      bridge.send_event("send_notification_reply_message_failed", {
        message_id: id,
        error: told(error),
      });
    });
  });
  bridge.set_send_notification_reply_message_supported?.(true);
  return () => (isOver = true);
}

/** Send an answer to where a message is, and go there. */
export async function answerTo(
  { store, router }: App,
  messageId: number,
  text: string,
  send: (body: Record<string, unknown>) => Promise<unknown>,
): Promise<void> {
  const message = store.data.messages.get(messageId);
  if (!message) throw new Error("There is no such message here.");
  const conversation = conversationOf(message.key, store.data.topicNames);
  await send(
    conversation.kind === "topic"
      ? {
          type: "stream",
          to: conversation.channelId,
          topic: conversation.topic,
          content: text,
          read_by_sender: true,
        }
      : {
          type: "direct",
          to: conversation.people.length ? conversation.people : [store.me],
          content: text,
          read_by_sender: true,
        },
  );
  router.toNarrow(narrowOf(conversation), messageId);
}
