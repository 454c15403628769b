/** Optimistic changes of channels, topics, and settings, rolled back if the server refuses. */

import type { App } from "../app";
import { isResolved, keyOf, topicKey, withResolved, type TopicOf } from "../data/conversations";
import { isFollowed, isMuted } from "../data/counts";
import { fold } from "../data/fold";
import { topicName, userName } from "../data/names";
import { ALL, nameOf } from "../data/narrow";
import type { Data } from "../data/data";
import { del, isTransient, patch, post } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import { TopicPolicy, type Subscription } from "../wire/objects";
import { deleteOfflineData } from "./storage.svelte";
import { words } from "../words/index.svelte";
import { readMarkerOf, type ReadMarker } from "./markRead.svelte";
import { recentOf } from "./recent.svelte";
import { topicOfMessage } from "./movedTopics";

type Changes = Omit<ServerEvent, "id"> & { type: string };

/** Show the new state immediately, send the request, and roll back and rethrow if it fails. */
async function optimistically(
  { store }: App,
  after: Changes,
  before: Changes,
  ask: () => Promise<unknown>,
): Promise<void> {
  const take = (event: Changes) =>
    store.change((data: Data) => fold(data, [{ id: 0, ...event } as ServerEvent]));
  take(after);
  try {
    await ask();
  } catch (error) {
    take(before);
    throw error;
  }
}

/** Thrown if undoing would overwrite someone else's change. */
export const changedSince = () => new Error(words.common.undoFailed);

/** The topic's current name, found through one of its messages; the given name if that fails. */
export async function topicNow(topic: TopicOf, messageId: number | undefined): Promise<TopicOf> {
  if (messageId === undefined) return topic;
  try {
    return (await topicOfMessage(messageId)) ?? topic;
  } catch (error) {
    if (isTransient(error)) throw error;
    return topic;
  }
}

export async function setTopicPolicy(
  app: App,
  channelId: number,
  topic: string,
  policy: TopicPolicy,
): Promise<boolean> {
  const { store, toasts } = app;
  const to: TopicOf = { kind: "topic", channelId, topic };
  const was = policyOf(store.data, to);
  const newest = recentOf(store).newestIn(keyOf(to));
  const done = await toasts.attempt(putPolicy(app, to, policy));
  if (done && policy === TopicPolicy.muted && was !== policy) {
    toasts.undoable(
      words.shell.stateOf({ name: topicName(topic), state: words.shell.muted }),
      async () => {
        const now = await topicNow(to, newest);
        if (policyOf(store.data, now) !== policy) throw changedSince();
        await putPolicy(app, now, was);
      },
    );
  }
  return done;
}

export function policyOf(
  { topicPolicies }: Pick<Data, "topicPolicies">,
  topic: TopicOf,
): TopicPolicy {
  return topicPolicies.get(keyOf(topic))?.visibility_policy ?? TopicPolicy.inherit;
}

export function putPolicy(app: App, to: TopicOf, policy: TopicPolicy): Promise<void> {
  const { channelId, topic } = to;
  const was = policyOf(app.store.data, to);
  const event = (visibility_policy: TopicPolicy) => ({
    type: "user_topic",
    stream_id: channelId,
    topic_name: topic,
    last_updated: Math.floor(Date.now() / 1000),
    visibility_policy,
  });
  return optimistically(app, event(policy), event(was), () =>
    post("/user_topics", { stream_id: channelId, topic, visibility_policy: policy }),
  );
}

/** Mute a topic, or unmute it if it's muted by its own policy or its channel's. */
export function toggleMuted(app: App, channelId: number, topic: string): Promise<boolean> {
  const { data } = app.store;
  const inMuted = data.channels.get(channelId)?.subscription?.is_muted;
  const policy = inMuted ? TopicPolicy.unmuted : TopicPolicy.inherit;
  const muted = isMuted(data, topicKey(channelId, topic));
  return setTopicPolicy(app, channelId, topic, muted ? policy : TopicPolicy.muted);
}

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
  return app.toasts.attempt(putSubscription(app, channelId, property, value));
}

function putSubscription<Name extends keyof Subscription>(
  app: App,
  channelId: number,
  property: Name,
  value: Subscription[Name],
): Promise<void> {
  const was = app.store.data.channels.get(channelId)?.subscription?.[property];
  const event = (now: unknown) => ({
    type: "subscription",
    op: "update",
    stream_id: channelId,
    property,
    value: now,
  });
  return optimistically(app, event(value), event(was), () =>
    post("/users/me/subscriptions/properties", {
      subscription_data: [{ stream_id: channelId, property, value }],
    }),
  );
}

export async function muteChannel(app: App, channelId: number, muted: boolean): Promise<void> {
  const channel = app.store.data.channels.get(channelId);
  if (!channel || !(await setSubscription(app, channelId, "is_muted", muted)) || !muted) return;
  app.toasts.undoable(
    words.shell.stateOf({ name: `#${channel.name}`, state: words.shell.muted }),
    () => putSubscription(app, channelId, "is_muted", false),
  );
}

export async function muteUser(app: App, userId: number, muted: boolean): Promise<void> {
  const { store, toasts } = app;
  const ask = (on: boolean) => (on ? post : del)(`/users/me/muted_users/${userId}`);
  if (!(await toasts.attempt(ask(muted))) || !muted) return;
  const name = userName(store.data.users, userId);
  toasts.undoable(words.shell.stateOf({ name, state: words.shell.muted }), () => ask(false));
}

export function subscribe({ toasts }: App, channelName: string): Promise<boolean> {
  return toasts.attempt(join(channelName));
}

const join = (name: string) => post("/users/me/subscriptions", { subscriptions: [{ name }] });

/** Unsubscribe, with an offer to undo except for private channels, which can't be rejoined; those
 * are confirmed first (`LeavePrivate`). */
export async function unsubscribe(app: App, channelId: number): Promise<void> {
  const channel = app.store.data.channels.get(channelId);
  if (!channel) return;
  const { name } = channel;
  if (!(await app.toasts.attempt(leave(name)))) return;
  app.toasts.undoable(words.shell.left({ name }), () => {
    // An outdated name would create a new channel.
    const now = app.store.data.channels.get(channelId);
    if (!now || now.is_archived) throw changedSince();
    return join(now.name);
  });
}

export const leave = (channelName: string): Promise<unknown> =>
  del("/users/me/subscriptions", { subscriptions: [channelName] });

/** Resolve or unresolve a topic. `messageId` is one of its messages. */
export async function setResolved(
  app: App,
  topic: string,
  messageId: number,
  resolved: boolean,
): Promise<boolean> {
  const name = withResolved(topic, resolved);
  // Someone else already did it.
  if (name === topic) return true;
  const done = await app.toasts.attempt(rename(messageId, name));
  if (done && resolved) {
    app.toasts.undoable(
      words.shell.stateOf({ name: topicName(topic), state: words.shell.resolved }),
      async () => {
        const now = await topicOfMessage(messageId).catch((error: unknown) => {
          if (isTransient(error)) throw error;
          // The message was deleted or moved out of reach.
          return null;
        });
        if (!now || !isResolved(now.topic)) throw changedSince();
        await rename(messageId, withResolved(now.topic, false));
      },
    );
  }
  return done;
}

const rename = (messageId: number, topic: string) =>
  patch(`/messages/${messageId}`, {
    topic,
    propagate_mode: "change_all",
    send_notification_to_old_thread: false,
    send_notification_to_new_thread: true,
  });

export function setSetting(app: App, name: string, value: unknown): Promise<boolean> {
  const was = app.store.data.settings[name];
  const event = (now: unknown) => ({
    type: "user_settings",
    op: "update",
    property: name,
    value: now,
  });
  return app.toasts.attempt(
    optimistically(app, event(value), event(was), () => patch("/settings", { [name]: value })),
  );
}

/** Mark as read with an offer to undo. `read` returns the messages that it marked. */
export async function markManyAsRead(
  { store, toasts, router }: App,
  read: (marker: ReadMarker) => Promise<readonly number[]>,
): Promise<void> {
  const marker = readMarkerOf(store);
  let ids: readonly number[] = [];
  const done = await toasts.attempt(read(marker).then((loaded) => (ids = loaded)));
  if (!done || !ids.length) return;
  toasts.undoable(words.shell.markedRead({ count: ids.length }), () => {
    const { route } = router;
    const shown = route.view === "narrow" ? route.narrow : route.view === "feed" ? ALL : null;
    return marker.unread(ids, shown && nameOf(shown));
  });
}

/** Show a view in the sidebar, or move it to "more". */
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
  return app.toasts.attempt(optimistically(app, added(is_pinned), before, ask));
}

/** Dismiss a hint permanently. */
export function dismissHint(app: App, step: string): Promise<boolean> {
  const { onboarding } = app.store.data;
  const steps = (names: Iterable<string>) => ({
    type: "onboarding_steps",
    onboarding_steps: [...names].map((name) => ({ type: "one_time_notice", name })),
  });
  const rest = [...onboarding].filter((name) => name !== step);
  return app.toasts.attempt(
    optimistically(app, steps(rest), steps(onboarding), () =>
      post("/users/me/onboarding_steps", { onboarding_step: step }),
    ),
  );
}

export async function copyLink(app: App, fragment: string): Promise<void> {
  const link = new URL(`/#${fragment}`, window.location.origin).href;
  try {
    await navigator.clipboard.writeText(link);
    app.toasts.info(words.shell.copied);
  } catch {
    app.toasts.error(words.shell.notCopied({ link }));
  }
}

export async function signOut(csrf: string): Promise<void> {
  await deleteOfflineData();
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
