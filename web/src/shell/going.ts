/** Navigation from the current view. */

import type { App } from "../app";
import { keyOf, type Conversation, type ConversationKey } from "../data/conversations";
import { nextUnread } from "../data/inbox";
import { wholeMove } from "../data/moves";
import {
  channelIn,
  channelNarrow,
  conversationIn,
  fragmentOf,
  isOfChannel,
  narrowOf,
} from "../data/narrow";
import { sections, topicRows } from "../data/sidebar";
import { topicsOf } from "../live/topics.svelte";
import { words } from "../words/index.svelte";

/** `web_channel_default_view` */
const ChannelView = { topTopic: 1, feed: 2, topics: 3, topUnread: 4 } as const;

/** The conversation in view, if any. */
export function conversationHere({ router }: App): Conversation | null {
  const { route } = router;
  return route.view === "narrow" ? conversationIn(route.narrow) : null;
}

/** Go to the previous view, or home if the user came by a link. */
export function goBack({ router }: App): void {
  const { navigation } = window as { navigation?: { canGoBack: boolean } };
  if (navigation?.canGoBack) window.history.back();
  else router.go(router.home);
}

/** Follow the topic in view when it moves. Returns a function that stops. */
export function followTopic(app: App): () => void {
  const { store, router } = app;
  return store.onEvent((event) => {
    const move = wholeMove(event);
    const { route } = router;
    if (!move || route.view !== "narrow" || !isOfChannel(route.narrow)) return;
    if (keyHere(app) !== move.from || !store.data.channels.has(move.to.channelId)) return;
    router.replace(fragmentOf(narrowOf(move.to), store.data));
  });
}

export function keyHere(app: App): ConversationKey | null {
  const conversation = conversationHere(app);
  return conversation && keyOf(conversation);
}

/** The channel in view, whole or in part. */
export function channelHere({ router }: App): number | null {
  const { route } = router;
  if (route.view === "topics") return route.channelId;
  return route.view === "narrow" ? channelIn(route.narrow) : null;
}

/** Open a channel by the user's default view setting. */
export async function openChannel(app: App, channelId: number): Promise<void> {
  const { store, router } = app;
  const view = store.settings.web_channel_default_view;
  if (view === ChannelView.topics) return router.go(topicsFragment(app, channelId));
  if (view !== ChannelView.feed) {
    const topics = await topicsOf(store)
      .load(channelId)
      .catch(() => []);
    const rows = topicRows(store.data, channelId, topics).filter((row) => !row.muted);
    const row = view === ChannelView.topUnread ? rows.find((one) => one.unread) : undefined;
    const chosen = row ?? rows[0];
    if (chosen) {
      return router.toNarrow(narrowOf({ kind: "topic", channelId, topic: chosen.name }));
    }
  }
  router.toNarrow(channelNarrow(channelId));
}

export function topicsFragment({ store }: App, channelId: number): string {
  const name = store.data.channels.get(channelId)?.name.replace(/[\s/%#]+/g, "-") ?? "";
  return `topics/channel/${channelId}-${encodeURIComponent(name)}`;
}

/** Go to the next unread conversation, or tell the user that there isn't any. */
export function goToNext(app: App, kind: "topic" | "direct"): void {
  const row = nextUnread(app.store.data, keyHere(app), kind);
  if (row) app.router.toNarrow(narrowOf(row.conversation));
  else app.toasts.note(kind === "topic" ? words.shell.noUnreadTopic : words.shell.noUnreadDirect);
}

/** Go to the previous or next channel of the sidebar. */
export function goToChannel(app: App, step: 1 | -1): void {
  const ids = sections(app.store.data).flatMap((section) =>
    section.channels.map((channel) => channel.stream_id),
  );
  const here = channelHere(app);
  const at = here === null ? (step > 0 ? -1 : 0) : ids.indexOf(here);
  const id = ids[(at + step + ids.length) % ids.length];
  if (id !== undefined) void openChannel(app, id);
}
