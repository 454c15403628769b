import type { ChannelFolder, Subscription, UserTopic, WireChannel } from "../../wire/objects";
import { channelOfKey, topicKey } from "../conversations";
import { channelOf, type Channel } from "../data";
import type { DataBuilder, Fold } from "./builder";
import { forget, changeUnread } from "./messages";

/** Properties that an event carries next to the one it changes. */
const CONTENT_FIELDS = [
  "rendered_description",
  "history_public_to_subscribers",
  "is_web_public",
] as const;

export const CHANNEL_FOLDS: Record<string, Fold> = {
  "stream/create": (next, event) => {
    const channels = next.map("channels");
    for (const channel of event["streams"] as WireChannel[]) {
      const known = channels.get(channel.stream_id)?.subscription ?? null;
      channels.set(channel.stream_id, { ...channelOf(channel, false), subscription: known });
    }
  },

  "stream/delete": (next, event) => {
    for (const id of event["stream_ids"] as number[]) {
      next.map("channels").delete(id);
      forgetChannel(next, id);
    }
  },

  "stream/update": (next, event) => {
    const id = event["stream_id"] as number;
    const property = String(event["property"]);
    const changes: Record<string, unknown> = { [property]: event["value"] };
    for (const name of CONTENT_FIELDS) if (name in event) changes[name] = event[name];
    next.change("channels", id, changes as Partial<Channel>);
    if (property === "is_archived" && event["value"]) forgetChannel(next, id);
  },

  "subscription/add": (next, event) => {
    const channels = next.map("channels");
    for (const channel of event["subscriptions"] as (WireChannel & Subscription)[]) {
      channels.set(channel.stream_id, channelOf(channel, true));
    }
  },

  "subscription/remove": (next, event) => {
    for (const { stream_id } of event["subscriptions"] as { stream_id: number }[]) {
      const channel = next.data.channels.get(stream_id);
      if (!channel?.subscription) continue;
      const subscriber_count = channel.subscriber_count - 1;
      next.change("channels", stream_id, { subscription: null, subscriber_count });
      forgetChannel(next, stream_id);
    }
  },

  "subscription/update": (next, event) => {
    const id = event["stream_id"] as number;
    const before = next.data.channels.get(id)?.subscription;
    const property = String(event["property"]);
    if (!before || !(property in before)) return;
    const subscription = { ...before, [property]: event["value"] };
    next.change("channels", id, { subscription: subscription as Subscription });
  },

  "subscription/peer_add": (next, event) => peers(next, event, 1),
  "subscription/peer_remove": (next, event) => peers(next, event, -1),

  "channel_folder/add": (next, event) => {
    const folder = event["channel_folder"] as ChannelFolder;
    next.map("folders").set(folder.id, folder);
  },
  "channel_folder/update": (next, event) => {
    const changes = event["data"] as Partial<ChannelFolder>;
    next.change("folders", event["channel_folder_id"] as number, changes);
  },
  "channel_folder/reorder": (next, event) => {
    (event["order"] as number[]).forEach((id, order) => next.change("folders", id, { order }));
  },

  default_streams: (next, event) => {
    const streams = event["default_streams"] as (number | { stream_id: number })[];
    next.put(
      "defaultChannels",
      streams.map((channel) => (typeof channel === "number" ? channel : channel.stream_id)),
    );
  },

  user_topic: (next, event) => {
    const policy = event as unknown as UserTopic;
    const key = topicKey(policy.stream_id, policy.topic_name);
    const { stream_id, topic_name, last_updated, visibility_policy } = policy;
    const policies = next.map("topicPolicies");
    if (visibility_policy === 0) policies.delete(key);
    else policies.set(key, { stream_id, topic_name, last_updated, visibility_policy });
  },
};

function peers(next: DataBuilder, event: Parameters<Fold>[1], sign: 1 | -1): void {
  const change = (event["user_ids"] as number[]).length * sign;
  for (const id of event["stream_ids"] as number[]) {
    const channel = next.data.channels.get(id);
    if (channel) {
      next.change("channels", id, { subscriber_count: channel.subscriber_count + change });
    }
  }
}

/** Drop the state of a channel that the user can no longer see. */
function forgetChannel(next: DataBuilder, channelId: number): void {
  const ids = [...next.data.unread.where]
    .filter(([, key]) => channelOfKey(key) === channelId)
    .map(([id]) => id);
  if (ids.length) changeUnread(next, (unread) => ids.forEach((id) => forget(unread, id)));
}
