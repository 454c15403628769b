/** Small things done to channels, topics and one's settings: shown at once, taken back if refused. */

import type { App } from "../app";
import { plainTopic, topicKey, withResolved } from "../data/conversations";
import { isFollowed, isMuted } from "../data/counts";
import { fold } from "../data/fold";
import { topicName, userName } from "../data/names";
import type { Data } from "../data/data";
import { del, patch, post } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import { TopicPolicy, type Subscription } from "../wire/objects";
import { forgetReading } from "./forgetting";
import { words } from "../words/index.svelte";
import { readMarkerOf, type ReadMarker } from "./markRead.svelte";

type News = Omit<ServerEvent, "id"> & { type: string };

/** Show what will be, ask for it, and show what was if it is refused. */
async function atOnce(
  { store, toasts }: App,
  after: News,
  before: News,
  ask: () => Promise<unknown>,
): Promise<boolean> {
  const take = (news: News) =>
    store.change((data: Data) => fold(data, [{ id: 0, ...news } as ServerEvent]));
  take(after);
  const done = await toasts.attempt(ask());
  if (!done) take(before);
  return done;
}

/** Say what is not where it was any more, and offer to take it back. */
function sayGone({ toasts }: App, name: string, state: string, back: () => unknown): void {
  toasts.note(words.shell.isNow(name, state), {
    label: words.shell.undo,
    run: () => void back(),
  });
}

export async function setTopicPolicy(
  app: App,
  channelId: number,
  topic: string,
  policy: TopicPolicy,
): Promise<boolean> {
  const key = topicKey(channelId, topic);
  const was = app.store.data.topicPolicies.get(key)?.visibility_policy ?? 0;
  const news = (visibility_policy: TopicPolicy) => ({
    type: "user_topic",
    stream_id: channelId,
    topic_name: topic,
    last_updated: Math.floor(Date.now() / 1000),
    visibility_policy,
  });
  const done = await atOnce(app, news(policy), news(was), () =>
    post("/user_topics", { stream_id: channelId, topic, visibility_policy: policy }),
  );
  if (done && policy === TopicPolicy.muted && was !== policy) {
    const back = () => setTopicPolicy(app, channelId, topic, was);
    sayGone(app, plainTopic(topicName(topic)), words.shell.muted, back);
  }
  return done;
}

/** Mute a topic; let it be heard again where it is muted, by itself or with its channel. */
export function toggleMuted(app: App, channelId: number, topic: string): Promise<boolean> {
  const { data } = app.store;
  const inMuted = data.channels.get(channelId)?.subscription?.is_muted;
  const heard = inMuted ? TopicPolicy.unmuted : TopicPolicy.inherit;
  const muted = isMuted(data, topicKey(channelId, topic));
  return setTopicPolicy(app, channelId, topic, muted ? heard : TopicPolicy.muted);
}

/** Follow a topic, or do not any more. */
export function toggleFollowed(app: App, channelId: number, topic: string): Promise<boolean> {
  const followed = isFollowed(app.store.data, topicKey(channelId, topic));
  return setTopicPolicy(
    app,
    channelId,
    topic,
    followed ? TopicPolicy.inherit : TopicPolicy.followed,
  );
}

export function setSubscription<Name extends keyof Subscription>(
  app: App,
  channelId: number,
  property: Name,
  value: Subscription[Name],
): Promise<boolean> {
  const was = app.store.data.channels.get(channelId)?.subscription?.[property];
  const news = (now: unknown) => ({
    type: "subscription",
    op: "update",
    stream_id: channelId,
    property,
    value: now,
  });
  return atOnce(app, news(value), news(was), () =>
    post("/users/me/subscriptions/properties", {
      subscription_data: [{ stream_id: channelId, property, value }],
    }),
  );
}

/** Mute a channel, or let it be heard again. */
export async function muteChannel(app: App, channelId: number, muted: boolean): Promise<void> {
  const channel = app.store.data.channels.get(channelId);
  if (!channel || !(await setSubscription(app, channelId, "is_muted", muted)) || !muted) return;
  const back = () => setSubscription(app, channelId, "is_muted", false);
  sayGone(app, `#${channel.name}`, words.shell.muted, back);
}

export async function muteUser(app: App, userId: number, muted: boolean): Promise<void> {
  const ask = (on: boolean) =>
    app.toasts.attempt((on ? post : del)(`/users/me/muted_users/${userId}`));
  if (!(await ask(muted)) || !muted) return;
  sayGone(app, userName(app.store.data.users, userId), words.shell.muted, () => ask(false));
}

export function subscribe({ toasts }: App, channelName: string): Promise<boolean> {
  const subscriptions = [{ name: channelName }];
  return toasts.attempt(post("/users/me/subscriptions", { subscriptions }));
}

/**
 * Leave a channel. It is offered to take that back, but of a private one, which one cannot come
 * into again by oneself: there one has to be asked before (`LeavePrivate`).
 */
export async function unsubscribe(app: App, channelId: number): Promise<void> {
  const channel = app.store.data.channels.get(channelId);
  if (!channel) return;
  const { name } = channel;
  if (!(await app.toasts.attempt(leave(name)))) return;
  app.toasts.note(words.shell.left(name), {
    label: words.shell.undo,
    run: () => void subscribe(app, name),
  });
}

/** Raises what asking the server does. */
export const leave = (channelName: string): Promise<unknown> =>
  del("/users/me/subscriptions", { subscriptions: [channelName] });

/** Mark a topic as resolved, or take the mark away. `messageId` is one of its messages. */
export async function setResolved(
  app: App,
  topic: string,
  messageId: number,
  resolved: boolean,
): Promise<boolean> {
  const name = withResolved(topic, resolved);
  // Somebody else has done it meanwhile.
  if (name === topic) return true;
  const done = await app.toasts.attempt(
    patch(`/messages/${messageId}`, {
      topic: name,
      propagate_mode: "change_all",
      send_notification_to_old_thread: false,
      send_notification_to_new_thread: true,
    }),
  );
  if (done && resolved) {
    const back = () => setResolved(app, name, messageId, false);
    sayGone(app, topicName(topic), words.shell.resolved, back);
  }
  return done;
}

export function setSetting(app: App, name: string, value: unknown): Promise<boolean> {
  const was = app.store.data.settings[name];
  const news = (now: unknown) => ({
    type: "user_settings",
    op: "update",
    property: name,
    value: now,
  });
  return atOnce(app, news(value), news(was), () => patch("/settings", { [name]: value }));
}

/** Read much at once, and offer to take it back. `read` answers what became read. */
export async function readMuch(
  { store, toasts }: App,
  read: (marker: ReadMarker) => Promise<readonly number[]>,
): Promise<void> {
  const marker = readMarkerOf(store);
  let ids: readonly number[] = [];
  const done = await toasts.attempt(read(marker).then((found) => (ids = found)));
  if (!done || !ids.length) return;
  toasts.note(words.shell.markedRead(ids.length), {
    label: words.shell.undo,
    run: () => void toasts.attempt(marker.unread(ids)),
  });
}

/** Keep one of the views in sight, or put it under "more". */
export function pinView(app: App, fragment: string, is_pinned: boolean): Promise<boolean> {
  const known = app.store.data.views.get(fragment);
  const ask = () =>
    known
      ? patch(`/navigation_views/${encodeURIComponent(fragment)}`, { is_pinned })
      : post("/navigation_views", { fragment, is_pinned });
  const added = (pinned: boolean) => ({
    type: "navigation_view",
    op: "add",
    navigation_view: { fragment, is_pinned: pinned, name: known?.name ?? null },
  });
  const before = known
    ? added(known.is_pinned)
    : { type: "navigation_view", op: "remove", fragment };
  return atOnce(app, added(is_pinned), before, ask);
}

/** A hint was understood: it does not come again. */
export function dismissHint(app: App, step: string): Promise<boolean> {
  const { onboarding } = app.store.data;
  const steps = (names: Iterable<string>) => ({
    type: "onboarding_steps",
    onboarding_steps: [...names].map((name) => ({ type: "one_time_notice", name })),
  });
  const rest = [...onboarding].filter((name) => name !== step);
  return atOnce(app, steps(rest), steps(onboarding), () =>
    post("/users/me/onboarding_steps", { onboarding_step: step }),
  );
}

export async function copyLink(app: App, fragment: string): Promise<void> {
  const link = new URL(`/#${fragment}`, window.location.origin).href;
  try {
    await navigator.clipboard.writeText(link);
    app.toasts.note(words.shell.copied);
  } catch {
    app.toasts.trouble(words.shell.notCopied(link));
  }
}

export async function signOut(csrf: string): Promise<void> {
  await forgetReading();
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/logout";
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "csrf";
  field.value = csrf;
  form.append(field);
  document.body.append(form);
  form.submit();
}
