import type { Conversation } from "../data/conversations";
import type { UserSettings } from "../data/data";
import { post } from "../wire/http";
import { words } from "../words/index.svelte";

export function sendLater(to: Conversation, content: string, at: number): Promise<unknown> {
  const target =
    to.kind === "topic"
      ? { type: "channel", to: to.channelId, topic: to.topic }
      : { type: "direct", to: to.people };
  return post("/scheduled_messages", {
    ...target,
    content,
    scheduled_delivery_timestamp: at,
    read_by_sender: true,
  });
}

/** A time, without the date if it's today. */
export function timeText(at: number, settings: UserSettings): string {
  const date = new Date(at * 1000);
  const today = new Date().toDateString() === date.toDateString();
  return new Intl.DateTimeFormat(words.language, {
    hour: "numeric",
    minute: "2-digit",
    hour12: !settings.twenty_four_hour_time,
    ...(today ? {} : { weekday: "short", day: "numeric", month: "short" }),
  }).format(date);
}
