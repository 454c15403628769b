import type { ChannelFolder, Subscription, UserTopic, WireChannel } from "../../wire/objects";
import { channelOfKey, topicKey } from "../conversations";
import { channelOf, type Channel } from "../data";
import type { Draft } from "../draft";
import type { Fold } from "../fold";
import { forget, unreadDraft } from "./unread";

/** Properties that an event carries next to the one it changes. */
const BROUGHT = ["rendered_description", "history_public_to_subscribers", "is_web_public"] as const;

export const CHANNEL_FOLDS: Record<string, Fold> = {
  "stream/create": (draft, event) => {
    const channels = draft.map("channels");
    for (const one of event["streams"] as WireChannel[]) {
      const known = channels.get(one.stream_id)?.subscription ?? null;
      channels.set(one.stream_id, { ...channelOf(one, false), subscription: known });
    }
  },

  "stream/delete": (draft, event) => {
    for (const id of event["stream_ids"] as number[]) {
      draft.map("channels").delete(id);
      forgetChannel(draft, id);
    }
  },

  "stream/update": (draft, event) => {
    const id = event["stream_id"] as number;
    const property = String(event["property"]);
    const news: Record<string, unknown> = { [property]: event["value"] };
    for (const name of BROUGHT) if (name in event) news[name] = event[name];
    draft.change("channels", id, news as Partial<Channel>);
    if (property === "is_archived" && event["value"]) forgetChannel(draft, id);
  },

  "subscription/add": (draft, event) => {
    const channels = draft.map("channels");
    for (const one of event["subscriptions"] as (WireChannel & Subscription)[]) {
      channels.set(one.stream_id, channelOf(one, true));
    }
  },

  "subscription/remove": (draft, event) => {
    for (const { stream_id } of event["subscriptions"] as { stream_id: number }[]) {
      const channel = draft.data.channels.get(stream_id);
      if (!channel?.subscription) continue;
      const subscriber_count = channel.subscriber_count - 1;
      draft.change("channels", stream_id, { subscription: null, subscriber_count });
      forgetChannel(draft, stream_id);
    }
  },

  "subscription/update": (draft, event) => {
    const id = event["stream_id"] as number;
    const before = draft.data.channels.get(id)?.subscription;
    const property = String(event["property"]);
    if (!before || !(property in before)) return;
    const subscription = { ...before, [property]: event["value"] };
    draft.change("channels", id, { subscription: subscription as Subscription });
  },

  "subscription/peer_add": (draft, event) => peers(draft, event, 1),
  "subscription/peer_remove": (draft, event) => peers(draft, event, -1),

  "channel_folder/add": (draft, event) => {
    const folder = event["channel_folder"] as ChannelFolder;
    draft.map("folders").set(folder.id, folder);
  },
  "channel_folder/update": (draft, event) => {
    const news = event["data"] as Partial<ChannelFolder>;
    draft.change("folders", event["channel_folder_id"] as number, news);
  },
  "channel_folder/reorder": (draft, event) => {
    (event["order"] as number[]).forEach((id, order) => draft.change("folders", id, { order }));
  },

  default_streams: (draft, event) => {
    const told = event["default_streams"] as (number | { stream_id: number })[];
    draft.put(
      "defaultChannels",
      told.map((one) => (typeof one === "number" ? one : one.stream_id)),
    );
  },

  user_topic: (draft, event) => {
    const one = event as unknown as UserTopic;
    const key = topicKey(one.stream_id, one.topic_name);
    const { stream_id, topic_name, last_updated, visibility_policy } = one;
    const policies = draft.map("topicPolicies");
    if (visibility_policy === 0) policies.delete(key);
    else policies.set(key, { stream_id, topic_name, last_updated, visibility_policy });
  },
};

function peers(draft: Draft, event: Parameters<Fold>[1], sign: 1 | -1): void {
  const many = (event["user_ids"] as number[]).length * sign;
  for (const id of event["stream_ids"] as number[]) {
    const channel = draft.data.channels.get(id);
    if (channel) {
      draft.change("channels", id, { subscriber_count: channel.subscriber_count + many });
    }
  }
}

/** Drop the state of a channel that the user can no longer see. */
function forgetChannel(draft: Draft, channelId: number): void {
  const ids = [...draft.data.unread.where]
    .filter(([, key]) => channelOfKey(key) === channelId)
    .map(([id]) => id);
  if (ids.length) unreadDraft(draft, (unread) => ids.forEach((id) => forget(unread, id)));
}
