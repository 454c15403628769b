/** The client's state: the snapshot from POST /register, kept current by events. `Data` is
 * immutable: `fold` returns the next one, which shares unchanged slices, so `===` tells whether a
 * slice changed. */

import type {
  ChannelFolder,
  Draft as DraftMessage,
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
  WireMessage,
} from "../wire/objects";
import type { Snapshot } from "../wire/events";
import { directKey, topicKey, type ConversationKey } from "./conversations";
import type { MessageList } from "./lists";

/** A channel that the user can see, and their subscription. */
export interface Channel extends WireChannel {
  subscription: Subscription | null;
}

export interface Message extends Omit<WireMessage, "flags"> {
  key: ConversationKey;
  flags: readonly string[];
}

export interface UserSettings {
  [name: string]: unknown;
  color_scheme: number;
  default_language: string;
  enter_sends: boolean;
  twenty_four_hour_time: boolean;
  web_home_view: string;
  web_mark_read_on_scroll_policy: number;
  web_channel_default_view: number;
  web_font_size_px: number;
  web_line_height_percent: number;
  web_escape_navigates_to_home_view: boolean;
  enable_desktop_notifications: boolean;
  enable_sounds: boolean;
  presence_enabled: boolean;
  high_contrast_mode: boolean;
  starred_message_counts: boolean;
}

export interface Unread {
  /** Conversation of each unread message. */
  where: ReadonlyMap<number, ConversationKey>;
  /** Unread messages of each conversation, oldest first. */
  by: ReadonlyMap<ConversationKey, readonly number[]>;
  mentions: ReadonlySet<number>;
  /** Whether older ones exist that the server left out. */
  incomplete: boolean;
}

export interface Data {
  me: number;
  /** Single values by the API's names, such as `realm_name` or `max_…`. */
  realm: Readonly<Record<string, unknown>>;
  settings: UserSettings;
  defaultSettings: Readonly<Record<string, unknown>>;
  users: ReadonlyMap<number, User>;
  bots: ReadonlyMap<number, ManagedBot>;
  groups: ReadonlyMap<number, UserGroup>;
  channels: ReadonlyMap<number, Channel>;
  folders: ReadonlyMap<number, ChannelFolder>;
  defaultChannels: readonly number[];
  topicPolicies: ReadonlyMap<ConversationKey, UserTopic>;
  /** Topics in their original spelling. */
  topicNames: ReadonlyMap<ConversationKey, string>;
  unread: Unread;
  starred: ReadonlySet<number>;
  mutedUsers: ReadonlySet<number>;
  alertWords: readonly string[];
  drafts: ReadonlyMap<number, DraftMessage>;
  snippets: ReadonlyMap<number, Snippet>;
  scheduled: ReadonlyMap<number, ScheduledMessage>;
  reminders: ReadonlyMap<number, Reminder>;
  views: ReadonlyMap<string, NavigationView>;
  /** The newest message of each direct conversation. */
  directs: ReadonlyMap<ConversationKey, number>;
  newestMessage: number;
  presences: ReadonlyMap<number, Presence>;
  statuses: ReadonlyMap<number, Status>;
  /** People typing, and since when in ms of the local clock. */
  typing: ReadonlyMap<ConversationKey, ReadonlyMap<number, number>>;
  emoji: ReadonlyMap<string, RealmEmoji>;
  linkifiers: readonly Linkifier[];
  playgrounds: readonly Playground[];
  domains: readonly { domain: string; allow_subdomains: boolean }[];
  profileFields: readonly ProfileField[];
  profileFieldTypes: Readonly<Record<string, { id: number; name: string }>>;
  onboarding: ReadonlySet<string>;
  /** Increases with each event about invitations. */
  invitesChanged: number;
  /** Messages that a list shows or recently showed. */
  messages: ReadonlyMap<number, Message>;
  lists: ReadonlyMap<string, MessageList>;
}

const SINGLE =
  /^(realm_|server_|max_|password_|event_queue_|presence_last_|zulip_|jitsi_|giphy_|klipy_|stop_words|can_create)/;

/** Named like single values, but stored as separate slices. */
const SLICES = new Set(["realm_emoji", "realm_user_settings_defaults"]);

/** Lists that events replace as a whole. */
const LISTS = new Set(["realm_banners", "realm_embedded_bots"]);

function byId<T, K extends keyof T>(items: readonly T[], id: K): Map<T[K], T> {
  return new Map(items.map((item) => [item[id], item]));
}

/** Large groups come without members; the server says whether the user belongs to them. */
function groupsIn({
  realm_user_groups: all,
  realm_user_groups_own: ownGroups,
  user_id: me,
}: Snapshot) {
  const isLarge = (group: UserGroup) =>
    ownGroups?.includes(group.id) && !group.members.includes(me);
  return all.map((group) => (isLarge(group) ? { ...group, members: [me] } : group));
}

/** The state right after registering. */
export function dataOf(snapshot: Snapshot): Data {
  const me = snapshot.user_id;
  const isSingle = ([name, value]: [string, unknown]) =>
    SINGLE.test(name) &&
    !SLICES.has(name) &&
    (LISTS.has(name) || !(Array.isArray(value) && name.startsWith("realm_")));
  const channels = new Map<number, Channel>();
  for (const channel of [...snapshot.never_subscribed, ...snapshot.unsubscribed]) {
    channels.set(channel.stream_id, channelOf(channel, false));
  }
  for (const subscription of snapshot.subscriptions)
    channels.set(subscription.stream_id, channelOf(subscription, true));
  const active = (user: User): User => ({ ...user, is_active: true });
  const deactivated = (user: User): User => ({ ...user, is_active: false });
  return {
    me,
    realm: Object.fromEntries(Object.entries(snapshot).filter(isSingle)),
    settings: snapshot.user_settings as UserSettings,
    defaultSettings: snapshot.realm_user_settings_defaults,
    users: byId(
      [
        ...snapshot.cross_realm_bots.map(active),
        ...snapshot.realm_users.map(active),
        ...snapshot.realm_non_active_users.map(deactivated),
      ],
      "user_id",
    ),
    bots: byId(snapshot.realm_bots, "user_id"),
    groups: byId(groupsIn(snapshot), "id"),
    channels,
    folders: byId(snapshot.channel_folders, "id"),
    defaultChannels: snapshot.realm_default_streams,
    topicPolicies: new Map(
      snapshot.user_topics.map((policy) => [topicKey(policy.stream_id, policy.topic_name), policy]),
    ),
    topicNames: new Map(
      [
        ...snapshot.user_topics.map((policy) => [policy.stream_id, policy.topic_name] as const),
        ...snapshot.unread_msgs.streams.map((stream) => [stream.stream_id, stream.topic] as const),
      ].map(([channelId, topic]) => [topicKey(channelId, topic), topic]),
    ),
    unread: unreadOf(snapshot, me),
    starred: new Set(snapshot.starred_messages),
    mutedUsers: new Set(snapshot.muted_users.map((user) => user.id)),
    alertWords: snapshot.alert_words,
    drafts: byId(snapshot.drafts, "id"),
    snippets: byId(snapshot.saved_snippets, "id"),
    scheduled: byId(snapshot.scheduled_messages, "scheduled_message_id"),
    reminders: byId(snapshot.reminders, "reminder_id"),
    views: byId(snapshot.navigation_views, "fragment"),
    directs: new Map(
      snapshot.recent_private_conversations.map((conversation) => [
        directKey(conversation.user_ids, me),
        conversation.max_message_id,
      ]),
    ),
    newestMessage: snapshot.max_message_id,
    presences: new Map(
      Object.entries(snapshot.presences).map(([id, presence]) => [Number(id), presence]),
    ),
    statuses: new Map(
      Object.entries(snapshot.user_status).map(([id, status]) => [Number(id), status]),
    ),
    typing: new Map(),
    emoji: new Map(Object.entries(snapshot.realm_emoji)),
    linkifiers: snapshot.realm_linkifiers,
    playgrounds: snapshot.realm_playgrounds,
    domains: snapshot.realm_domains,
    profileFields: snapshot.custom_profile_fields,
    profileFieldTypes: snapshot.custom_profile_field_types,
    onboarding: new Set(snapshot.onboarding_steps.map((step) => step.name)),
    invitesChanged: 0,
    messages: new Map(),
    lists: new Map(),
  };
}

/** The fields of a subscription, which the API returns within the channel. */
const OWN_FIELDS = [
  "color",
  "is_muted",
  "pin_to_top",
  "desktop_notifications",
  "audible_notifications",
  "push_notifications",
  "email_notifications",
  "wildcard_mentions_notify",
] as const;

/** Separate the subscription from the channel. */
export function channelOf(wire: WireChannel & Partial<Subscription>, subscribed: boolean): Channel {
  const channel: Record<string, unknown> = { ...wire };
  const subscription: Record<string, unknown> = {};
  for (const name of OWN_FIELDS) {
    subscription[name] = channel[name];
    delete channel[name];
  }
  // Legacy duplicates of other fields.
  delete channel["in_home_view"];
  delete channel["is_announcement_only"];
  delete channel["email_address"];
  channel["subscription"] = subscribed ? subscription : null;
  return channel as unknown as Channel;
}

function unreadOf(snapshot: Snapshot, me: number): Unread {
  const unreadMessages = snapshot.unread_msgs;
  const keyOf = new Map<number, ConversationKey>();
  const by = new Map<ConversationKey, number[]>();
  const take = (key: ConversationKey, ids: number[]) => {
    by.set(
      key,
      [...(by.get(key) ?? []), ...ids].sort((a, b) => a - b),
    );
    for (const id of ids) keyOf.set(id, key);
  };
  for (const unread of unreadMessages.streams)
    take(topicKey(unread.stream_id, unread.topic), unread.unread_message_ids);
  for (const unread of unreadMessages.pms)
    take(directKey([unread.other_user_id], me), unread.unread_message_ids);
  for (const huddle of unreadMessages.huddles) {
    take(directKey(huddle.user_ids_string.split(",").map(Number), me), huddle.unread_message_ids);
  }
  return {
    where: keyOf,
    by,
    mentions: new Set(unreadMessages.mentions),
    incomplete: unreadMessages.old_unreads_missing,
  };
}

export function messageOf(wire: WireMessage, flags: readonly string[], me: number): Message {
  const key =
    wire.type === "stream"
      ? topicKey(wire.stream_id ?? 0, wire.subject)
      : directKey(peopleOf(wire), me);
  return { ...wire, flags, key };
}

/** IDs of all participants of a direct message. */
export function peopleOf(message: Pick<WireMessage, "display_recipient">): number[] {
  return Array.isArray(message.display_recipient)
    ? message.display_recipient.map((user) => user.id)
    : [];
}
