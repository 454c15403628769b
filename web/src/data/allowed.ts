/** What one may do with a message, as far as it is known here: to offer only what will be allowed. */

import { holds, isAdmin, may } from "./permissions";
import type { Data, Message } from "./data";
import { Role, type GroupSetting, type Seconds } from "../wire/objects";

type Known = Pick<Data, "me" | "realm" | "groups" | "channels" | "users">;

function within(data: Known, setting: string, since: Seconds, now: Seconds): boolean {
  const limit = data.realm[setting] as number | null | undefined;
  return limit === null || limit === undefined || now - since <= limit;
}

function holdsThere(data: Known, message: Message, setting: string): boolean {
  const channel = data.channels.get(message.stream_id ?? 0);
  const own = (channel as Record<string, unknown> | undefined)?.[setting];
  return holds(data.groups, own as GroupSetting | undefined, data.me);
}

/** Whether it can be changed at all: there is somebody to write in its channel. */
function isOpen(data: Known, message: Message): boolean {
  if (message.type === "private") return true;
  return data.channels.get(message.stream_id ?? 0)?.is_archived === false;
}

export function mayEdit(data: Known, message: Message, now: Seconds): boolean {
  return (
    message.sender_id === data.me &&
    isOpen(data, message) &&
    !message.submessages.length &&
    data.realm["realm_allow_message_editing"] === true &&
    within(data, "realm_message_content_edit_limit_seconds", message.timestamp, now)
  );
}

export function mayDelete(data: Known, message: Message, now: Seconds): boolean {
  if (!isOpen(data, message)) return false;
  if (isAdmin(data) || may(data, "realm_can_delete_any_message_group")) return true;
  if (holdsThere(data, message, "can_delete_any_message_group")) return true;
  const owner = data.users.get(message.sender_id)?.bot_owner_id;
  return (
    (message.sender_id === data.me || owner === data.me) &&
    (may(data, "realm_can_delete_own_message_group") ||
      holdsThere(data, message, "can_delete_own_message_group")) &&
    within(data, "realm_message_content_delete_limit_seconds", message.timestamp, now)
  );
}

export function mayMove(data: Known, message: Message, now: Seconds): boolean {
  if (message.type !== "stream" || !isOpen(data, message)) return false;
  const ways: [string, string, string][] = [
    [
      "realm_can_move_messages_between_topics_group",
      "can_move_messages_within_channel_group",
      "realm_move_messages_within_stream_limit_seconds",
    ],
    [
      "realm_can_move_messages_between_channels_group",
      "can_move_messages_out_of_channel_group",
      "realm_move_messages_between_streams_limit_seconds",
    ],
  ];
  const role = data.users.get(data.me)?.role ?? Role.guest;
  return ways.some(
    ([everywhere, there, limit]) =>
      (may(data, everywhere) || holdsThere(data, message, there)) &&
      (role <= Role.moderator || within(data, limit, message.timestamp, now)),
  );
}

export function mayResolve(data: Known, channelId: number): boolean {
  const channel = data.channels.get(channelId);
  if (!channel || channel.is_archived) return false;
  return (
    may(data, "realm_can_resolve_topics_group") ||
    holds(data.groups, channel.can_resolve_topics_group, data.me)
  );
}

export function maySeeHistory(data: Known, message: Message): boolean {
  const policy = data.realm["realm_message_edit_history_visibility_policy"];
  if (policy === "none") return false;
  return Boolean(message.last_edit_timestamp || message.last_moved_timestamp);
}
