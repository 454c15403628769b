/** Which messages cause a notification, through which channel, and why. */

import type { Subscription } from "../wire/objects";
import { isFollowed, isMuted } from "./counts";
import type { Data, Message } from "./data";

export type NotificationState = Pick<
  Data,
  "me" | "channels" | "topicPolicies" | "mutedUsers" | "settings"
>;
/** The fields that matter. */
export type NotifiableMessage = Pick<Message, "sender_id" | "type" | "key" | "flags" | "stream_id">;

/** Notification channels in the order of the settings. */
export const NOTIFICATION_CHANNELS = ["desktop", "sound", "push", "email"] as const;
export type NotificationChannel = (typeof NOTIFICATION_CHANNELS)[number];

/** Why a notification is sent: the first that applies. */
type Reason = "direct" | "mentioned" | "wildcard" | "alerted" | "followed" | "channel";

/** Each channel's settings: for messages to the user, and the names of the others. */
const SETTINGS: Readonly<Record<NotificationChannel, readonly [personal: string, name: string]>> = {
  desktop: ["enable_desktop_notifications", "desktop"],
  sound: ["enable_sounds", "audible"],
  push: ["enable_offline_push_notifications", "push"],
  email: ["enable_offline_email_notifications", "email"],
};

interface NotificationEffect {
  /** Show a desktop notification. */
  shown: boolean;
  /** Play a sound. */
  isAudible: boolean;
}

/** Why the user is notified; null if they aren't. The server uses the same rule for push and email:
 * `notificationCases.json` tests both. */
export function notificationReason(
  known: NotificationState,
  message: NotifiableMessage,
  medium: NotificationChannel,
): Reason | null {
  if (message.sender_id === known.me || message.flags.includes("read")) return null;
  if (known.mutedUsers.has(message.sender_id)) return null;
  const { settings } = known;
  const [personal, name] = SETTINGS[medium];
  const on = (setting: string) => settings[setting] === true;
  const toMe = on(personal);
  if (message.type === "private") return toMe ? "direct" : null;
  const muted = isMuted(known, message.key);
  const followed = isFollowed(known, message.key);
  const has = (flag: string) => message.flags.includes(flag);
  const channel = known.channels.get(message.stream_id ?? 0)?.subscription;
  if (toMe) {
    if (has("mentioned")) return "mentioned";
    const counts =
      (followed && on("enable_followed_topic_wildcard_mentions_notify")) ||
      (!muted && (channel?.wildcard_mentions_notify ?? on("wildcard_mentions_notify")));
    const wild = message.flags.some((flag) => flag.endsWith("wildcard_mentioned"));
    if (counts && wild) return "wildcard";
    // Desktop and sound apply to someone who is present.
    const rings = medium === "desktop" || medium === "sound";
    if (rings && !muted && has("has_alert_word")) return "alerted";
  }
  if (followed && on(`enable_followed_topic_${name}_notifications`)) return "followed";
  const override = channelOverride(channel, medium);
  return !muted && (override ?? on(`enable_stream_${name}_notifications`)) ? "channel" : null;
}

/** The user's override for a channel; null or undefined if there isn't any. */
export function channelOverride(
  subscription: Subscription | null | undefined,
  channel: NotificationChannel,
): boolean | null | undefined {
  return subscription?.[`${SETTINGS[channel][1]}_notifications` as "push_notifications"];
}

/** What a new message triggers. */
export function notificationEffect(
  known: NotificationState,
  message: NotifiableMessage,
): NotificationEffect {
  return {
    shown: notificationReason(known, message, "desktop") !== null,
    isAudible: notificationReason(known, message, "sound") !== null,
  };
}

/** A message's text for a notification. */
export function notificationText(html: string): string {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const hidden of page.querySelectorAll(".spoiler-content, .katex-html")) hidden.remove();
  for (const image of page.querySelectorAll<HTMLImageElement>("img[alt]")) {
    image.replaceWith(image.alt);
  }
  return (page.body.textContent ?? "").replace(/\s+/g, " ").trim().slice(0, 240);
}
