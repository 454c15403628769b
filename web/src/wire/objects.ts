/** Objects of the API, with the fields that the client reads. */

/** Seconds since 1970. */
export type Seconds = number;

export interface User {
  user_id: number;
  delivery_email: string | null;
  email: string;
  full_name: string;
  date_joined: string;
  is_active?: boolean;
  is_deleted?: boolean;
  is_owner: boolean;
  is_admin: boolean;
  is_guest: boolean;
  is_bot: boolean;
  bot_type: number | null;
  bot_owner_id: number | null;
  role: number;
  timezone: string;
  /** Null: a Gravatar, which this client doesn't load. */
  avatar_url?: string | null;
  avatar_version: number;
  is_system_bot?: boolean;
  profile_data?: Record<string, { value: string; rendered_value?: string }>;
}

export const Role = { owner: 100, admin: 200, moderator: 300, member: 400, guest: 600 } as const;

export interface AnonymousGroup {
  direct_members: number[];
  direct_subgroups: number[];
}

/** A group's ID, or groups and users. */
export type GroupSetting = number | AnonymousGroup;

export interface UserGroup {
  id: number;
  name: string;
  description: string;
  members: number[];
  direct_subgroup_ids: number[];
  is_system_group: boolean;
  deactivated: boolean;
  creator_id: number | null;
  date_created: Seconds | null;
  can_add_members_group: GroupSetting;
  can_join_group: GroupSetting;
  can_leave_group: GroupSetting;
  can_manage_group: GroupSetting;
  can_mention_group: GroupSetting;
  can_remove_members_group: GroupSetting;
}

export interface WireChannel {
  stream_id: number;
  name: string;
  description: string;
  rendered_description: string;
  date_created: Seconds;
  creator_id: number | null;
  invite_only: boolean;
  is_web_public: boolean;
  is_archived: boolean;
  history_public_to_subscribers: boolean;
  message_retention_days: number | null;
  first_message_id: number | null;
  folder_id: number | null;
  topics_policy: "inherit" | "allow_empty_topic" | "disable_empty_topic" | "empty_topic_only";
  is_recently_active: boolean;
  stream_weekly_traffic: number | null;
  subscriber_count: number;
  can_add_subscribers_group: GroupSetting;
  can_administer_channel_group: GroupSetting;
  can_create_topic_group: GroupSetting;
  can_delete_any_message_group: GroupSetting;
  can_delete_own_message_group: GroupSetting;
  can_move_messages_out_of_channel_group: GroupSetting;
  can_move_messages_within_channel_group: GroupSetting;
  can_remove_subscribers_group: GroupSetting;
  can_resolve_topics_group: GroupSetting;
  can_send_message_group: GroupSetting;
  can_subscribe_group: GroupSetting;
}

/** The part of a subscription that is added to the channel. */
export interface Subscription {
  color: string;
  is_muted: boolean;
  pin_to_top: boolean;
  desktop_notifications: boolean | null;
  audible_notifications: boolean | null;
  push_notifications: boolean | null;
  email_notifications: boolean | null;
  wildcard_mentions_notify: boolean | null;
}

export interface ChannelFolder {
  id: number;
  name: string;
  description: string;
  rendered_description: string;
  is_archived: boolean;
  order: number;
}

export interface Reaction {
  emoji_name: string;
  emoji_code: string;
  reaction_type: "unicode_emoji" | "realm_emoji" | "zulip_extra_emoji";
  user_id: number;
}

export interface Submessage {
  id: number;
  message_id: number;
  sender_id: number;
  msg_type: string;
  content: string;
}

export interface TopicLink {
  text: string;
  url: string;
}

interface EditHistoryEntry {
  timestamp: Seconds;
  user_id: number | null;
  prev_content?: string;
  prev_stream?: number;
  stream?: number;
  prev_topic?: string;
  topic?: string;
}

export interface WireMessage {
  id: number;
  sender_id: number;
  sender_full_name: string;
  sender_email: string;
  avatar_url: string | null;
  type: "stream" | "private";
  stream_id?: number;
  display_recipient: string | { id: number; email: string; full_name: string }[];
  subject: string;
  topic_links: TopicLink[];
  content: string;
  content_type: string;
  timestamp: Seconds;
  client: string;
  is_me_message: boolean;
  reactions: Reaction[];
  submessages: Submessage[];
  edit_history?: EditHistoryEntry[];
  last_edit_timestamp?: Seconds;
  last_moved_timestamp?: Seconds;
  flags?: string[];
  match_content?: string;
  match_subject?: string;
}

/** A program that acts for a user. */
export interface AccessKey {
  key_id: number;
  name: string;
  access: "full" | "read" | "send";
  /** Null: everything its owner can see. */
  channel_ids: number[] | null;
  direct_messages: boolean;
  mcp_only: boolean;
  created_at: Seconds;
  expires_at: Seconds | null;
  last_used_at: Seconds | null;
  last_used_from: string | null;
}

export interface Draft {
  id: number;
  type: "" | "stream" | "private";
  /** A channel ID, or user IDs. */
  to: number[];
  topic: string;
  content: string;
  timestamp: Seconds;
}

export interface ScheduledMessage {
  scheduled_message_id: number;
  type: "stream" | "private";
  to: number | number[];
  topic?: string;
  content: string;
  rendered_content: string;
  scheduled_delivery_timestamp: Seconds;
  failed: boolean;
}

export interface Reminder {
  reminder_id: number;
  type: "private";
  to: number[];
  content: string;
  rendered_content: string;
  scheduled_delivery_timestamp: Seconds;
  failed: boolean;
  reminder_target_message_id: number;
}

export interface Snippet {
  id: number;
  title: string;
  content: string;
  date_created: Seconds;
}

export const TopicPolicy = { inherit: 0, muted: 1, unmuted: 2, followed: 3 } as const;
export type TopicPolicy = (typeof TopicPolicy)[keyof typeof TopicPolicy];

export interface UserTopic {
  stream_id: number;
  topic_name: string;
  last_updated: Seconds;
  visibility_policy: TopicPolicy;
}

export interface Status {
  status_text?: string;
  emoji_name?: string;
  emoji_code?: string;
  reaction_type?: Reaction["reaction_type"];
  /** When the status ends. */
  scheduled_end_time?: Seconds;
  away?: boolean;
}

export interface Presence {
  active_timestamp?: Seconds;
  idle_timestamp?: Seconds;
}

export interface RealmEmoji {
  id: string;
  name: string;
  source_url: string;
  still_url: string | null;
  deactivated: boolean;
  author_id: number | null;
}

export interface Linkifier {
  id: number;
  pattern: string;
  url_template: string;
  example_input?: string | null;
  reverse_template?: string | null;
  alternative_url_templates?: string[];
}

export interface Playground {
  id: number;
  name: string;
  pygments_language: string;
  url_template: string;
}

export interface ProfileField {
  id: number;
  type: number;
  order: number;
  name: string;
  hint: string;
  field_data: string;
  display_in_profile_summary?: boolean;
  required: boolean;
  editable_by_user: boolean;
  use_for_user_matching?: boolean;
}

export interface NavigationView {
  fragment: string;
  is_pinned: boolean;
  name: string | null;
}

/** A bot as its managers see it. */
export interface ManagedBot {
  user_id: number;
  default_sending_stream: string | null;
  default_events_register_stream: string | null;
  default_all_public_streams: boolean;
  /** The service of outgoing webhooks and embedded bots. */
  services?: { service_name?: string; config_data?: Record<string, string> }[];
}

/** A bot that the server can run itself. */
export interface EmbeddedBot {
  name: string;
  /** Configuration keys with example values. */
  config: Record<string, string>;
}

export interface Banner {
  id: number;
  content: string;
  posted_by: number;
  posted_at: number;
  ends_at: number;
}

/** A pinned message. */
export interface Pin {
  message_id: number;
  stream_id: number;
  topic: string;
  pinned_by: number;
  pinned_at: Seconds;
}
