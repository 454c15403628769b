/** The fields of channels, groups and the organization, page by page. */

import type { FieldGroup, FieldOf } from "../settings/form/fields";

const holders = (...names: string[]): FieldOf[] =>
  names.map((name) => ({ name, kind: "holders" as const }));
/** How many things one person can have. */
const quotas = (...names: string[]): FieldOf[] =>
  names.map((name) => ({ name, kind: "size" as const, min: 1, max: 1_000_000 }));
const switches = (...names: string[]): FieldOf[] =>
  names.map((name) => ({ name, kind: "switch" as const }));

export const CHANNEL_PERMISSIONS: readonly FieldGroup[] = [
  {
    name: "channelPeople",
    fields: holders(
      "can_subscribe_group",
      "can_add_subscribers_group",
      "can_remove_subscribers_group",
      "can_administer_channel_group",
    ),
  },
  {
    name: "channelWriting",
    fields: holders("can_send_message_group", "can_create_topic_group"),
  },
  {
    name: "channelMessages",
    fields: holders(
      "can_resolve_topics_group",
      "can_move_messages_within_channel_group",
      "can_move_messages_out_of_channel_group",
      "can_delete_own_message_group",
      "can_delete_any_message_group",
    ),
  },
];

export const GROUP_PERMISSIONS: readonly FieldGroup[] = [
  {
    name: "groupPermissions",
    fields: holders(
      "can_mention_group",
      "can_join_group",
      "can_leave_group",
      "can_add_members_group",
      "can_remove_members_group",
      "can_manage_group",
    ),
  },
];

export const ORGANIZATION_PROFILE: readonly FieldGroup[] = [
  {
    name: "",
    fields: [
      { name: "name", kind: "text", max: 40 },
      { name: "description", kind: "area", max: 1000 },
      {
        name: "org_type",
        kind: "choice",
        values: [0, 10, 20, 30, 35, 40, 50, 60, 70, 80, 90, 100, 1000],
      },
      { name: "default_language", kind: "language" },
    ],
  },
];

export const MESSAGES: readonly FieldGroup[] = [
  {
    name: "editing",
    fields: [
      { name: "allow_message_editing", kind: "switch" },
      { name: "message_content_edit_limit_seconds", kind: "limit" },
      {
        name: "message_edit_history_visibility_policy",
        kind: "choice",
        values: ["all", "moves", "none"],
      },
      { name: "message_content_delete_limit_seconds", kind: "limit" },
      {
        name: "message_retention_days",
        kind: "limit",
        forOwners: true,
        cautious: (days) => days !== null,
      },
    ],
  },
  {
    name: "moving",
    fields: [
      {
        name: "topics_policy",
        kind: "choice",
        values: ["allow_empty_topic", "disable_empty_topic"],
      },
      { name: "move_messages_within_stream_limit_seconds", kind: "limit" },
      { name: "move_messages_between_streams_limit_seconds", kind: "limit" },
      { name: "send_channel_events_messages", kind: "switch" },
    ],
  },
  {
    name: "shown",
    fields: [
      ...switches("enable_read_receipts", "inline_image_preview", "inline_url_embed_preview"),
      { name: "media_preview_size", kind: "choice", values: [100, 150, 200] },
      { name: "gif_rating_policy", kind: "choice", values: [0, 2, 3, 4, 5] },
      { name: "default_code_block_language", kind: "text", max: 80 },
    ],
  },
  {
    name: "announcements",
    fields: [
      { name: "new_stream_announcements_stream_id", kind: "channel" },
      { name: "signup_announcements_stream_id", kind: "channel" },
      { name: "zulip_update_announcements_stream_id", kind: "channel" },
      { name: "moderation_request_channel_id", kind: "channel" },
    ],
  },
  {
    name: "calls",
    fields: [
      { name: "video_chat_provider", kind: "choice", values: [0, 1, 4] },
      { name: "jitsi_server_url", kind: "text", max: 200, empty: "default" },
    ],
  },
  {
    name: "mails",
    fields: [
      ...switches(
        "message_content_allowed_in_email_notifications",
        "send_welcome_emails",
        "digest_emails_enabled",
      ),
      { name: "digest_weekday", kind: "choice", values: [0, 1, 2, 3, 4, 5, 6] },
    ],
  },
];

export const PERMISSIONS: readonly FieldGroup[] = [
  {
    name: "joining",
    fields: [
      { name: "invite_required", kind: "switch", forOwners: true },
      ...holders("can_invite_users_group", "create_multiuse_invite_group"),
      ...switches("emails_restricted_to_domains", "disallow_disposable_email_addresses"),
      { name: "waiting_period_threshold", kind: "number", min: 0, max: 3650 },
      { name: "enable_spectator_access", kind: "switch" },
    ],
  },
  {
    name: "channelRights",
    fields: holders(
      "can_create_public_channel_group",
      "can_create_private_channel_group",
      "can_create_web_public_channel_group",
      "can_add_subscribers_group",
      "can_set_topics_policy_group",
      "can_set_delete_message_policy_group",
    ),
  },
  {
    name: "messageRights",
    fields: holders(
      "can_mention_many_users_group",
      "can_resolve_topics_group",
      "can_move_messages_between_topics_group",
      "can_move_messages_between_channels_group",
      "can_delete_own_message_group",
      "can_delete_any_message_group",
    ),
  },
  {
    name: "directRights",
    fields: holders("direct_message_initiator_group", "direct_message_permission_group"),
  },
  {
    name: "peopleRights",
    fields: [
      ...holders("can_create_groups", "can_manage_all_groups", "can_access_all_users_group"),
      ...switches(
        "require_unique_names",
        "name_changes_disabled",
        "email_changes_disabled",
        "avatar_changes_disabled",
        "enable_guest_user_indicator",
        "enable_guest_user_dm_warning",
      ),
    ],
  },
  {
    name: "botRights",
    fields: holders(
      "can_create_bots_group",
      "can_create_write_only_bots_group",
      "can_add_custom_emoji_group",
    ),
  },
  {
    name: "limits",
    fields: quotas(
      "max_channels_per_user",
      "max_groups_per_user",
      "max_bots_per_user",
      "max_drafts_per_user",
      "max_unfinished_uploads_per_user",
    ),
  },
];
