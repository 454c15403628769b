/** What the user may do, so that only permitted actions are offered. */

import { Role, type GroupSetting, type UserGroup } from "../wire/objects";
import type { Channel, Data } from "./data";

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
export function holds(
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
  return holds(data.groups, data.realm[setting] as GroupSetting | undefined, data.me);
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

export function mayAdminister(data: Data, channel: Channel): boolean {
  return isAdmin(data) || holds(data.groups, channel.can_administer_channel_group, data.me);
}

export function mayPost(data: Pick<Data, "users" | "me" | "groups">, channel: Channel): boolean {
  if (channel.is_archived) return false;
  if (!channel.subscription && (channel.invite_only || isGuest(data))) return false;
  return holds(data.groups, channel.can_send_message_group, data.me);
}
