import type { GroupSetting } from "../wire/objects";
import type { Parameters } from "../wire/http";
import type { Channel, Data } from "./data";
import { administers, hasPermission } from "./permissions";

/** Who sees a channel: everyone on the web, everyone in the organization, or its subscribers, with
 * shared or protected history. */
export type Privacy = "web" | "public" | "private" | "hidden";

export const PRIVACIES: readonly Privacy[] = ["public", "private", "hidden", "web"];

export function privacyOf(
  channel: Pick<Channel, "invite_only" | "is_web_public" | "history_public_to_subscribers">,
): Privacy {
  if (channel.is_web_public) return "web";
  if (!channel.invite_only) return "public";
  return channel.history_public_to_subscribers ? "private" : "hidden";
}

/** Whether a change reveals earlier messages to more people. */
export function revealsHistory(after: unknown, before: unknown): boolean {
  const order = ["hidden", "private", "public", "web"];
  return order.indexOf(String(after)) > order.indexOf(String(before));
}

/** Parameters for PATCH /streams/{id}. */
export function privacyChange(privacy: Privacy): Parameters {
  return {
    is_private: privacy === "private" || privacy === "hidden",
    is_web_public: privacy === "web",
    history_public_to_subscribers: privacy !== "hidden",
  };
}

/** Parameters for a new channel. */
export function privacyOfNew(privacy: Privacy): Parameters {
  const { is_private, ...rest } = privacyChange(privacy);
  return { invite_only: is_private, ...rest };
}

/** The fragment of the channel's settings; the name of a tab may follow. */
export function channelSettings({ stream_id, name }: Pick<Channel, "stream_id" | "name">): string {
  return `channels/${stream_id}/${encodeURIComponent(name.replaceAll(" ", "-"))}`;
}

type Known = Pick<Data, "groups" | "me" | "users" | "realm">;

export interface ChannelRights {
  administer: boolean;
  addSubscribers: boolean;
  removeSubscribers: boolean;
  subscribe: boolean;
}

/** What the user may do with a channel. */
export function rightsIn(data: Known, channel: Channel): ChannelRights {
  const self = data.users.get(data.me);
  const has = (setting: GroupSetting | undefined) => hasPermission(data.groups, setting, data.me);
  const isGuest = self?.is_guest ?? true;
  const administer = administers(data, channel);
  const reads = Boolean(channel.subscription) || (!channel.invite_only && !isGuest);
  const generally = has(data.realm["realm_can_add_subscribers_group"] as GroupSetting | undefined);
  return {
    administer,
    addSubscribers:
      !isGuest && ((reads && (generally || administer)) || has(channel.can_add_subscribers_group)),
    removeSubscribers: administer || (reads && has(channel.can_remove_subscribers_group)),
    subscribe:
      (!channel.invite_only && (!isGuest || channel.is_web_public)) ||
      (!isGuest && (has(channel.can_subscribe_group) || has(channel.can_add_subscribers_group))),
  };
}

export type ChannelOrder = "name" | "people" | "traffic" | "new";

export function inOrder(channels: readonly Channel[], order: ChannelOrder): Channel[] {
  const by: Record<ChannelOrder, (channel: Channel) => number> = {
    name: () => 0,
    people: (channel) => -channel.subscriber_count,
    traffic: (channel) => -(channel.stream_weekly_traffic ?? -1),
    new: (channel) => -channel.date_created,
  };
  return [...channels].sort((a, b) => by[order](a) - by[order](b) || a.name.localeCompare(b.name));
}
