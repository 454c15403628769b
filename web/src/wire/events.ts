/** Events of a queue. Their fields are parsed where they are folded. */

import type {
  ChannelFolder,
  Draft,
  Linkifier,
  ManagedBot,
  NavigationView,
  Playground,
  Presence,
  ProfileField,
  RealmEmoji,
  Reminder,
  ScheduledMessage,
  Snippet,
  Status,
  Subscription,
  User,
  UserGroup,
  UserTopic,
  WireChannel,
} from "./objects";

export interface ServerEvent {
  id: number;
  type: string;
  op?: string;
  [field: string]: unknown;
}

/** IDs of existing messages that an event changes. */
export function changedMessageIds(event: ServerEvent): readonly number[] {
  switch (event.type) {
    case "update_message":
    case "delete_message":
      return (event["message_ids"] ?? [event["message_id"]]) as number[];
    case "update_message_flags":
      return event["messages"] as number[];
    case "reaction":
    case "submessage":
      return [event["message_id"] as number];
    default:
      return [];
  }
}

export interface UnreadSnapshot {
  count: number;
  pms: { other_user_id: number; unread_message_ids: number[] }[];
  huddles: { user_ids_string: string; unread_message_ids: number[] }[];
  streams: { stream_id: number; topic: string; unread_message_ids: number[] }[];
  mentions: number[];
  old_unreads_missing: boolean;
}

export interface Snapshot {
  [field: string]: unknown;
  queue_id: string;
  last_event_id: number;
  zulip_feature_level: number;
  server_generation: number;
  event_queue_longpoll_timeout_seconds: number;
  idle_queue_timeout_secs: number;

  user_id: number;
  email: string;
  delivery_email: string;
  full_name: string;

  realm_users: User[];
  realm_non_active_users: User[];
  /** Only the users needed at first are included. */
  realm_users_incomplete?: boolean;
  /** The user's own groups; large groups come without members. */
  realm_user_groups_own?: number[];
  cross_realm_bots: User[];
  realm_bots: ManagedBot[];
  realm_user_groups: UserGroup[];

  subscriptions: (WireChannel & Subscription)[];
  unsubscribed: (WireChannel & Subscription)[];
  never_subscribed: WireChannel[];
  channel_folders: ChannelFolder[];
  realm_default_streams: number[];

  max_message_id: number;
  unread_msgs: UnreadSnapshot;
  starred_messages: number[];
  recent_private_conversations: { max_message_id: number; user_ids: number[] }[];
  user_topics: UserTopic[];
  muted_users: { id: number; timestamp: number }[];

  drafts: Draft[];
  saved_snippets: Snippet[];
  scheduled_messages: ScheduledMessage[];
  reminders: Reminder[];
  navigation_views: NavigationView[];

  presences: Record<string, Presence>;
  presence_last_update_id: number;
  server_timestamp: number;
  user_status: Record<string, Status>;

  user_settings: Record<string, unknown>;
  realm_user_settings_defaults: Record<string, unknown>;
  alert_words: string[];
  custom_profile_fields: ProfileField[];
  custom_profile_field_types: Record<string, { id: number; name: string }>;
  realm_emoji: Record<string, RealmEmoji>;
  realm_linkifiers: Linkifier[];
  realm_playgrounds: Playground[];
  realm_domains: { domain: string; allow_subdomains: boolean }[];
  onboarding_steps: { type: string; name: string }[];
}
