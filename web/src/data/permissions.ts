/** What the user may do, so that only permitted actions are offered. */

import { Role, type GroupSetting, type UserGroup, type Seconds } from "../wire/objects";
import type { Channel, Data, Message } from "./data";
import { isResolved } from "./conversations";

/** Whether a user is in a group or its subgroups. */
export function isMember(
  groups: ReadonlyMap<number, UserGroup>,
  groupId: number,
  userId: number,
  seen: Set<number> = new Set(),
): boolean {
  const group = groups.get(groupId);
  if (!group || group.deactivated || seen.has(groupId)) return false;
  seen.add(groupId);
  return (
    group.members.includes(userId) ||
    group.direct_subgroup_ids.some((id) => isMember(groups, id, userId, seen))
  );
}

/** Whether a user has a permission. */
export function hasPermission(
  groups: ReadonlyMap<number, UserGroup>,
  setting: GroupSetting | undefined,
  userId: number,
): boolean {
  if (setting === undefined) return false;
  if (typeof setting === "number") return isMember(groups, setting, userId);
  return (
    setting.direct_members.includes(userId) ||
    setting.direct_subgroups.some((id) => isMember(groups, id, userId))
  );
}

/** Whether the user has an organization permission such as `realm_can_invite_users_group`. */
export function may(data: Pick<Data, "groups" | "realm" | "me">, setting: string): boolean {
  return hasPermission(data.groups, data.realm[setting] as GroupSetting | undefined, data.me);
}

/** Whether the user may create channels of any kind. */
export function mayCreateChannels(data: Pick<Data, "groups" | "realm" | "me">): boolean {
  return (
    may(data, "realm_can_create_public_channel_group") ||
    may(data, "realm_can_create_private_channel_group")
  );
}

export function isAdmin(data: Pick<Data, "users" | "me">): boolean {
  return data.users.get(data.me)?.is_admin ?? false;
}

export function isOwner(data: Data): boolean {
  return data.users.get(data.me)?.is_owner ?? false;
}

export function isGuest(data: Pick<Data, "users" | "me">): boolean {
  return data.users.get(data.me)?.role === Role.guest;
}

export function mayPost(data: Pick<Data, "users" | "me" | "groups">, channel: Channel): boolean {
  if (channel.is_archived) return false;
  if (!channel.subscription && (channel.invite_only || isGuest(data))) return false;
  return hasPermission(data.groups, channel.can_send_message_group, data.me);
}

type Known = Pick<Data, "me" | "realm" | "groups" | "channels" | "users">;

/** Allowed until a time in seconds (null: forever), or refused for a reason. */
type Permission = { until: number | null } | { refused: "rule" | "late" | "archived" };

function within(limit: unknown, since: Seconds, now: Seconds): Permission {
  if (typeof limit !== "number") return { until: null };
  return now > since + limit ? { refused: "late" } : { until: since + limit };
}

function channelOf(data: Known, message: Message): Channel | undefined {
  return message.stream_id === undefined ? undefined : data.channels.get(message.stream_id);
}

/** Whether the channel is archived or inaccessible to the user. */
function isClosed(data: Known, message: Message): boolean {
  return message.type === "stream" && channelOf(data, message)?.is_archived !== false;
}

export function permissionToEdit(data: Known, message: Message, now: Seconds): Permission {
  if (message.sender_id !== data.me || !data.realm["realm_allow_message_editing"]) {
    return { refused: "rule" };
  }
  if (message.submessages.length) return { refused: "rule" };
  if (isClosed(data, message)) return { refused: "archived" };
  return within(data.realm["realm_message_content_edit_limit_seconds"], message.timestamp, now);
}

export function permissionToDelete(data: Known, message: Message, now: Seconds): Permission {
  if (isClosed(data, message)) return { refused: "archived" };
  const channel = channelOf(data, message);
  const inChannel = (setting: GroupSetting | undefined) =>
    hasPermission(data.groups, setting, data.me);
  if (
    may(data, "realm_can_delete_any_message_group") ||
    inChannel(channel?.can_delete_any_message_group)
  ) {
    return { until: null };
  }
  const ownDomain =
    message.sender_id === data.me || data.users.get(message.sender_id)?.bot_owner_id === data.me;
  if (
    !ownDomain ||
    !(
      may(data, "realm_can_delete_own_message_group") ||
      inChannel(channel?.can_delete_own_message_group)
    )
  ) {
    return { refused: "rule" };
  }
  return within(data.realm["realm_message_content_delete_limit_seconds"], message.timestamp, now);
}

const isGiven = (leave: Permission) => "until" in leave;

export function mayEdit(data: Known, message: Message, now: Seconds): boolean {
  return isGiven(permissionToEdit(data, message, now));
}

export function mayDelete(data: Known, message: Message, now: Seconds): boolean {
  return isGiven(permissionToDelete(data, message, now));
}

export function mayDeleteTopic(data: Known, channel: Channel): boolean {
  return (
    !channel.is_archived &&
    (may(data, "realm_can_delete_any_message_group") ||
      hasPermission(data.groups, channel.can_delete_any_message_group, data.me))
  );
}

/** Whether the user may change a channel's name, privacy, and other settings. */
export function administers(
  data: Pick<Data, "groups" | "me" | "users">,
  channel: Channel,
): boolean {
  return (
    isAdmin(data) ||
    (!isGuest(data) && hasPermission(data.groups, channel.can_administer_channel_group, data.me))
  );
}

export function mayPin(data: Known, channel: Channel): boolean {
  return !channel.is_archived && (mayPost(data, channel) || administers(data, channel));
}

/** Whether the user may make a channel private, and would still see it. */
export function mayMakePrivate(
  data: Known & Pick<Data, "defaultChannels">,
  channel: Channel,
): boolean {
  return (
    !channel.is_archived &&
    !channel.invite_only &&
    channel.subscription !== undefined &&
    !data.defaultChannels.includes(channel.stream_id) &&
    administers(data, channel) &&
    may(data, "realm_can_create_private_channel_group")
  );
}

export function mayMoveWithin(data: Known, channel: Channel): boolean {
  return (
    !channel.is_archived &&
    (may(data, "realm_can_move_messages_between_topics_group") ||
      hasPermission(data.groups, channel.can_move_messages_within_channel_group, data.me))
  );
}

export function mayMoveOut(data: Known, channel: Channel): boolean {
  return (
    !channel.is_archived &&
    (may(data, "realm_can_move_messages_between_channels_group") ||
      hasPermission(data.groups, channel.can_move_messages_out_of_channel_group, data.me))
  );
}

/** Maximum age in seconds of messages that may be moved; null: no limit. */
export function moveLimit(data: Known, toOtherChannel: boolean): number | null {
  if ((data.users.get(data.me)?.role ?? Role.guest) <= Role.moderator) return null;
  const limit =
    data.realm[
      toOtherChannel
        ? "realm_move_messages_between_streams_limit_seconds"
        : "realm_move_messages_within_stream_limit_seconds"
    ];
  return typeof limit === "number" ? limit : null;
}

export function mayMove(data: Known, message: Message, now: Seconds): boolean {
  const channel = channelOf(data, message);
  if (message.type !== "stream" || !channel) return false;
  const isInTime = (limit: number | null) => isGiven(within(limit, message.timestamp, now));
  return (
    (mayMoveWithin(data, channel) && isInTime(moveLimit(data, false))) ||
    (mayMoveOut(data, channel) && isInTime(moveLimit(data, true)))
  );
}

export function mayResolve(data: Known, channel: Channel, topic: string): boolean {
  return (
    !channel.is_archived &&
    (topic !== "" || isResolved(topic)) &&
    (may(data, "realm_can_resolve_topics_group") ||
      hasPermission(data.groups, channel.can_resolve_topics_group, data.me))
  );
}

/** Channels that messages can be moved to. */
export function moveTargets(data: Data): Channel[] {
  return [...data.channels.values()]
    .filter((channel) => mayPost(data, channel) || (isAdmin(data) && !channel.is_archived))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** Whether topics of a channel may, or must, be empty. */
export function emptyTopics(data: Known, channel: Channel): "allowed" | "refused" | "only" {
  const policy =
    channel.topics_policy === "inherit" ? data.realm["realm_topics_policy"] : channel.topics_policy;
  if (policy === "empty_topic_only") return "only";
  return policy === "disable_empty_topic" ? "refused" : "allowed";
}

export function maySeeHistory(data: Known, message: Message): boolean {
  const policy = data.realm["realm_message_edit_history_visibility_policy"];
  if (policy === "none") return false;
  return Boolean(message.last_edit_timestamp || message.last_moved_timestamp);
}
