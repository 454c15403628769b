/** The fields of one's own settings, page by page; the organization's defaults are the same. */

import { UNDO_TIMES } from "../compose/undoing";
import type { FieldGroup } from "./form/fields";

export const PREFERENCES: readonly FieldGroup[] = [
  {
    name: "look",
    fields: [
      { name: "color_scheme", kind: "choice", values: [1, 3, 2] },
      { name: "web_font_size_px", kind: "choice", values: [12, 13, 14, 15, 16, 17, 18, 20, 22] },
      { name: "web_line_height_percent", kind: "choice", values: [120, 130, 140, 150, 160, 180] },
      { name: "high_contrast_mode", kind: "switch" },
      { name: "fluid_layout_width", kind: "switch" },
      {
        name: "web_animate_image_previews",
        kind: "choice",
        values: ["always", "on_hover", "never"],
      },
      { name: "user_list_style", kind: "choice", values: [1, 2, 3] },
    ],
  },
  {
    name: "language",
    fields: [
      { name: "default_language", kind: "language" },
      { name: "twenty_four_hour_time", kind: "choice", values: [false, true] },
      { name: "web_suggest_update_timezone", kind: "switch" },
    ],
  },
  {
    name: "reading",
    fields: [
      { name: "web_home_view", kind: "choice", values: ["inbox", "recent", "all_messages"] },
      { name: "web_escape_navigates_to_home_view", kind: "switch" },
      { name: "web_mark_read_on_scroll_policy", kind: "choice", values: [1, 2, 3] },
      { name: "web_channel_default_view", kind: "choice", values: [1, 4, 2, 3] },
      { name: "demote_inactive_streams", kind: "choice", values: [1, 2, 3] },
      { name: "web_stream_unreads_count_display_policy", kind: "choice", values: [1, 2, 3] },
      { name: "web_left_sidebar_unreads_count_summary", kind: "switch" },
      { name: "web_left_sidebar_show_channel_folders", kind: "switch" },
      { name: "starred_message_counts", kind: "switch" },
      { name: "display_emoji_reaction_users", kind: "switch" },
    ],
  },
  {
    name: "writing",
    fields: [
      { name: "enter_sends", kind: "switch" },
      { name: "web_navigate_to_sent_message", kind: "switch" },
      { name: "translate_emoticons", kind: "switch" },
      { name: "enable_drafts_synchronization", kind: "switch", cautious: (on) => !on },
    ],
  },
];

/** What only this browser keeps. */
export const IN_BROWSER: readonly FieldGroup[] = [
  {
    name: "browser",
    fields: [
      { name: "formatted_text", kind: "switch" },
      { name: "undo_send", kind: "choice", values: UNDO_TIMES },
    ],
  },
];

export const PRIVACY: readonly FieldGroup[] = [
  {
    name: "presence",
    fields: [
      { name: "presence_enabled", kind: "switch" },
      { name: "send_read_receipts", kind: "switch" },
      { name: "send_private_typing_notifications", kind: "switch" },
      { name: "send_stream_typing_notifications", kind: "switch" },
      { name: "receives_typing_notifications", kind: "switch" },
    ],
  },
  {
    name: "address",
    fields: [{ name: "email_address_visibility", kind: "choice", values: [1, 2, 5, 3, 4] }],
  },
];

/** What is told of each kind of message, and how: the columns of NOTIFICATION_TABLE. */
export const NOTIFICATION_WAYS = ["desktop", "sound", "push", "email"] as const;

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

/** A channel's own choices, in the same columns; and what holds where there is none. */
export const CHANNEL_WAYS = [
  ["desktop_notifications", "enable_stream_desktop_notifications"],
  ["audible_notifications", "enable_stream_audible_notifications"],
  ["push_notifications", "enable_stream_push_notifications"],
  ["email_notifications", "enable_stream_email_notifications"],
  ["wildcard_mentions_notify", "wildcard_mentions_notify"],
] as const;

export const NOTIFICATIONS: readonly FieldGroup[] = [
  {
    name: "mentions",
    fields: [
      { name: "wildcard_mentions_notify", kind: "switch" },
      { name: "enable_followed_topic_wildcard_mentions_notify", kind: "switch" },
    ],
  },
  {
    name: "desktop",
    fields: [
      { name: "notification_sound", kind: "choice", values: ["zulip", "ding", "none"] },
      { name: "pm_content_in_desktop_notifications", kind: "switch" },
      { name: "desktop_icon_count_display", kind: "choice", values: [1, 2, 3, 4] },
      { name: "enable_online_push_notifications", kind: "switch" },
    ],
  },
  {
    name: "email",
    fields: [
      {
        name: "email_notifications_batching_period_seconds",
        kind: "choice",
        values: [30, 60, 120, 300, 600, 1800, 3600, 86400, 604800],
      },
      { name: "message_content_in_email_notifications", kind: "switch" },
      { name: "realm_name_in_email_notifications_policy", kind: "choice", values: [1, 2, 3] },
      { name: "enable_login_emails", kind: "switch" },
      { name: "enable_digest_emails", kind: "switch" },
    ],
  },
  {
    name: "topics",
    fields: [
      { name: "automatically_follow_topics_policy", kind: "choice", values: [1, 2, 3, 4] },
      {
        name: "automatically_unmute_topics_in_muted_streams_policy",
        kind: "choice",
        values: [1, 2, 3, 4],
      },
      { name: "automatically_follow_topics_where_mentioned", kind: "switch" },
    ],
  },
];

/** Where the search looks, by the names of pages. */
export const SEARCHED: Readonly<Record<string, readonly FieldGroup[]>> = {
  preferences: [...PREFERENCES, ...IN_BROWSER],
  notifications: NOTIFICATIONS,
  privacy: PRIVACY,
};
