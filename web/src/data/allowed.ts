/** What the user may do with a message or topic, and until when, so that only permitted actions are
 * offered. */

import { Role, type GroupSetting, type Seconds } from "../wire/objects";
import { isResolved } from "./conversations";
import type { Channel, Data, Message } from "./data";
import { holds, isAdmin, isGuest, may, mayPost } from "./permissions";

type Known = Pick<Data, "me" | "realm" | "groups" | "channels" | "users">;

/** Allowed until a time in seconds (null: forever), or refused for a reason. */
export type Leave = { until: number | null } | { refused: "rule" | "late" | "archived" };

function within(limit: unknown, since: Seconds, now: Seconds): Leave {
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

export function leaveToEdit(data: Known, message: Message, now: Seconds): Leave {
  if (message.sender_id !== data.me || !data.realm["realm_allow_message_editing"]) {
    return { refused: "rule" };
  }
  if (message.submessages.length) return { refused: "rule" };
  if (isClosed(data, message)) return { refused: "archived" };
  return within(data.realm["realm_message_content_edit_limit_seconds"], message.timestamp, now);
}

export function leaveToDelete(data: Known, message: Message, now: Seconds): Leave {
  if (isClosed(data, message)) return { refused: "archived" };
  const channel = channelOf(data, message);
  const inChannel = (setting: GroupSetting | undefined) => holds(data.groups, setting, data.me);
  if (
    may(data, "realm_can_delete_any_message_group") ||
    inChannel(channel?.can_delete_any_message_group)
  ) {
    return { until: null };
  }
  const own =
    message.sender_id === data.me || data.users.get(message.sender_id)?.bot_owner_id === data.me;
  if (
    !own ||
    !(
      may(data, "realm_can_delete_own_message_group") ||
      inChannel(channel?.can_delete_own_message_group)
    )
  ) {
    return { refused: "rule" };
  }
  return within(data.realm["realm_message_content_delete_limit_seconds"], message.timestamp, now);
}

const isGiven = (leave: Leave) => "until" in leave;

export function mayEdit(data: Known, message: Message, now: Seconds): boolean {
  return isGiven(leaveToEdit(data, message, now));
}

export function mayDelete(data: Known, message: Message, now: Seconds): boolean {
  return isGiven(leaveToDelete(data, message, now));
}

export function mayDeleteTopic(data: Known, channel: Channel): boolean {
  return (
    !channel.is_archived &&
    (may(data, "realm_can_delete_any_message_group") ||
      holds(data.groups, channel.can_delete_any_message_group, data.me))
  );
}

export function mayPin(data: Known, channel: Channel): boolean {
  return (
    !channel.is_archived &&
    (mayPost(data, channel) ||
      isAdmin(data) ||
      (!isGuest(data) && holds(data.groups, channel.can_administer_channel_group, data.me)))
  );
}

export function mayMoveWithin(data: Known, channel: Channel): boolean {
  return (
    !channel.is_archived &&
    (may(data, "realm_can_move_messages_between_topics_group") ||
      holds(data.groups, channel.can_move_messages_within_channel_group, data.me))
  );
}

export function mayMoveOut(data: Known, channel: Channel): boolean {
  return (
    !channel.is_archived &&
    (may(data, "realm_can_move_messages_between_channels_group") ||
      holds(data.groups, channel.can_move_messages_out_of_channel_group, data.me))
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
      holds(data.groups, channel.can_resolve_topics_group, data.me))
  );
}

/** Channels that messages can be moved to. */
export function targets(data: Data): Channel[] {
  return [...data.channels.values()]
    .filter((channel) => mayPost(data, channel) || (isAdmin(data) && !channel.is_archived))
    .sort((one, other) => one.name.localeCompare(other.name));
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
