/** Which messages call one away from something else. */

import { isFollowed, isMuted } from "./counts";
import type { Data, Message } from "./data";

type NoticeKnown = Pick<Data, "me" | "channels" | "topicPolicies" | "mutedUsers" | "settings">;

export interface Notice {
  /** A note on the desktop. */
  shown: boolean;
  /** A sound. */
  heard: boolean;
}

const NONE: Notice = { shown: false, heard: false };

/** What a message that came in does, by one's settings. The server tells by mail by the same rule:
 * `noticeCases.json` holds both to it. */
export function noticeOf(known: NoticeKnown, message: Message): Notice {
  if (message.sender_id === known.me || message.flags.includes("read")) return NONE;
  if (known.mutedUsers.has(message.sender_id)) return NONE;
  const { settings } = known;
  const on = (name: string) => settings[name] === true;
  const { enable_desktop_notifications: shown, enable_sounds: heard } = settings;
  if (message.type === "private") return { shown, heard };
  const muted = isMuted(known, message.key);
  const followed = isFollowed(known, message.key);
  const channel = known.channels.get(message.stream_id ?? 0)?.subscription;
  const has = (flag: string) => message.flags.includes(flag);
  const countsForAll =
    (followed && on("enable_followed_topic_wildcard_mentions_notify")) ||
    (!muted && (channel?.wildcard_mentions_notify ?? on("wildcard_mentions_notify")));
  const addressed =
    has("mentioned") ||
    (!muted && has("has_alert_word")) ||
    (countsForAll && message.flags.some((flag) => flag.endsWith("wildcard_mentioned")));
  const chosen = {
    shown: channel?.desktop_notifications ?? on("enable_stream_desktop_notifications"),
    heard: channel?.audible_notifications ?? on("enable_stream_audible_notifications"),
  };
  return {
    shown:
      (addressed && shown) ||
      (followed && on("enable_followed_topic_desktop_notifications")) ||
      (!muted && chosen.shown),
    heard:
      (addressed && heard) ||
      (followed && on("enable_followed_topic_audible_notifications")) ||
      (!muted && chosen.heard),
  };
}

/** A message's text without its marks: for a note. */
export function plainText(html: string): string {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const hidden of page.querySelectorAll(".spoiler-content, .katex-html")) hidden.remove();
  for (const image of page.querySelectorAll<HTMLImageElement>("img[alt]")) {
    image.replaceWith(image.alt);
  }
  return (page.body.textContent ?? "").replace(/\s+/g, " ").trim().slice(0, 240);
}
