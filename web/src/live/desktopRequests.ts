/** Handles requests from the desktop app; loaded only there. */

import type { App } from "../app";
import { conversationOf } from "../data/conversations";
import { narrowOf } from "../data/narrow";
import { errorMessage } from "../wire/http";
import { desktop } from "./desktop";

/** Requests of the app's menu and notifications. */
export interface DesktopRequests {
  signOut(): void;
  showKeys(): void;
  showNotificationSettings(): void;
  answer(messageId: number, text: string): Promise<void>;
}

/** Listen to the app. Returns a function that ignores it from then on, since listeners can't be
 * removed. */
export function handleDesktopRequests(requests: DesktopRequests, bridge = desktop()): () => void {
  if (!bridge) return () => undefined;
  let isOver = false;
  const on = (name: string, listener: (...args: never[]) => void) =>
    bridge.on_event(name, (...rest: never[]) => isOver || listener(...rest));
  on("logout", () => requests.signOut());
  on("show-keyboard-shortcuts", () => requests.showKeys());
  on("show-notification-settings", () => requests.showNotificationSettings());
  on("send_notification_reply_message", (messageId: unknown, text: unknown) => {
    const id = Number(messageId);
    void requests.answer(id, String(text)).catch((error: unknown) => {
      bridge.send_event("send_notification_reply_message_failed", {
        message_id: id,
        error: errorMessage(error),
      });
    });
  });
  bridge.set_send_notification_reply_message_supported?.(true);
  return () => (isOver = true);
}

/** Reply in a message's conversation and go there. */
export async function replyTo(
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
