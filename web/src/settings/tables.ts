/** The personal settings by page; defaults for new users use the same. */

import { UNDO_TIMES } from "../compose/preferences.svelte";
import { declaredGroups, PERSONAL } from "./declared";
import type { FieldGroup, SettingField, Value } from "./form/fields";

const choice = (...values: Value[]) => ({ kind: "choice" as const, values });
const DETAILS: Record<string, Partial<SettingField>> = {
  color_scheme: choice(1, 3, 2),
  web_font_size_px: choice(12, 13, 14, 15, 16, 17, 18, 20, 22),
  web_line_height_percent: choice(120, 130, 140, 150, 160, 180),
  default_language: { kind: "language" },
  twenty_four_hour_time: choice(false, true),
  web_channel_default_view: choice(1, 4, 2, 3),
  enable_drafts_synchronization: { cautious: (on) => !on },
  email_address_visibility: choice(1, 2, 5, 3, 4),
  notification_sound: choice("zulip", "ding", "none"),
  email_notifications_batching_period_seconds: choice(
    ...[30, 60, 120, 300, 600, 1800, 3600, 86400, 604800],
  ),
};
const sections = (...names: string[]) => declaredGroups(PERSONAL, names, DETAILS);

export const PREFERENCES = sections("appearance", "language", "reading", "writing");

/** Stored only in this browser. */
export const IN_BROWSER: readonly FieldGroup[] = [
  {
    name: "browser",
    fields: [
      { name: "formatted_text", kind: "switch" },
      { name: "undo_send", kind: "choice", values: UNDO_TIMES },
    ],
  },
];

export const PRIVACY = sections("presence", "address");

export const NOTIFICATION_TABLE: readonly {
  kind: "directs" | "channels" | "followed";
  settings: readonly [string, string, string, string];
}[] = [
  {
    kind: "directs",
    settings: [
      "enable_desktop_notifications",
      "enable_sounds",
      "enable_offline_push_notifications",
      "enable_offline_email_notifications",
    ],
  },
  {
    kind: "followed",
    settings: [
      "enable_followed_topic_desktop_notifications",
      "enable_followed_topic_audible_notifications",
      "enable_followed_topic_push_notifications",
      "enable_followed_topic_email_notifications",
    ],
  },
  {
    kind: "channels",
    settings: [
      "enable_stream_desktop_notifications",
      "enable_stream_audible_notifications",
      "enable_stream_push_notifications",
      "enable_stream_email_notifications",
    ],
  },
];

/** A channel's overrides in the same columns, and the defaults. */
export const CHANNEL_OVERRIDES = [
  ["desktop_notifications", "enable_stream_desktop_notifications"],
  ["audible_notifications", "enable_stream_audible_notifications"],
  ["push_notifications", "enable_stream_push_notifications"],
  ["email_notifications", "enable_stream_email_notifications"],
  ["wildcard_mentions_notify", "wildcard_mentions_notify"],
] as const;

export const NOTIFICATIONS = sections("mentions", "desktop", "email", "topics");

/** The fields that search covers, by page. */
export const SEARCHED: Readonly<Record<string, readonly FieldGroup[]>> = {
  preferences: [...PREFERENCES, ...IN_BROWSER],
  notifications: NOTIFICATIONS,
  privacy: PRIVACY,
};
