/** Navigation from the current view. */

import type { App } from "../app";
import {
  keyOf,
  type Conversation,
  type ConversationKey,
  wholeMove,
  type Narrow,
} from "../data/conversations";
import { nextUnread } from "../data/inbox";
import {
  channelIn,
  channelNarrow,
  conversationIn,
  fragmentOf,
  isOfChannel,
  narrowOf,
} from "../data/narrow";
import { sidebarSections, topicRows } from "../data/sidebar";
import { topicsOf } from "../live/topics.svelte";
import { words } from "../words/index.svelte";
import { LocalSetting } from "../live/storage.svelte";
import type { Data } from "../data/data";
import { channelName, conversationName } from "../data/names";
import { searchText } from "../data/searchText";
import type { Route } from "../live/router.svelte";

/** `web_channel_default_view` */
const ChannelView = { topTopic: 1, feed: 2, topics: 3, topUnread: 4 } as const;

/** The conversation in view, if any. */
export function currentConversation(route: Route): Conversation | null {
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
    if (currentKey(app) !== move.from || !store.data.channels.has(move.to.channelId)) return;
    router.replace(fragmentOf(narrowOf(move.to), store.data));
  });
}

export function currentKey(app: App): ConversationKey | null {
  const conversation = currentConversation(app.router.route);
  return conversation && keyOf(conversation);
}

/** The channel in view, whole or in part. */
export function currentChannel(route: Route): number | null {
  if (route.view === "topics") return route.channelId;
  return route.view === "narrow" ? channelIn(route.narrow) : null;
}

/** Open a channel by the user's default view setting. */
export async function openChannel(app: App, channelId: number): Promise<void> {
  const { store, router } = app;
  const view = store.settings.web_channel_default_view;
  if (view === ChannelView.topics) return router.go(topicsFragment(app, channelId));
  if (view !== ChannelView.feed) {
    // If they can't be loaded, the channel's feed opens.
    const topics = await topicsOf(store)
      .load(channelId)
      .catch(() => []);
    const rows = topicRows(store.data, channelId, topics).filter((row) => !row.muted);
    const row = view === ChannelView.topUnread ? rows.find((row) => row.unread) : undefined;
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
  const row = nextUnread(app.store.data, currentKey(app), kind);
  if (row) app.router.toNarrow(narrowOf(row.conversation));
  else app.toasts.info(kind === "topic" ? words.shell.noUnreadTopic : words.shell.noUnreadDirect);
}

/** Go to the previous or next channel of the sidebar. */
export function goToChannel(app: App, step: 1 | -1): void {
  const ids = sidebarSections(app.store.data).flatMap((section) =>
    section.channels.map((channel) => channel.stream_id),
  );
  const current = currentChannel(app.router.route);
  const at = current === null ? (step > 0 ? -1 : 0) : ids.indexOf(current);
  const id = ids[(at + step + ids.length) % ids.length];
  if (id !== undefined) void openChannel(app, id);
}

const MAX_REMEMBERED = 12;

const remembered = new LocalSetting<readonly string[]>("visited", []);

/** Fragments without message IDs, each once. */
export function recentViews(): readonly string[] {
  return remembered.value;
}

export function rememberView(fragment: string): void {
  const place = fragment.replace(/\/near\/\d+$/, "");
  if (!place.startsWith("narrow/") && !place.startsWith("topics/")) return;
  remembered.value = [place, ...remembered.value.filter((other) => other !== place)].slice(
    0,
    MAX_REMEMBERED,
  );
}

type Known = Pick<Data, "users" | "channels" | "me">;

export function viewName(known: Known, route: Route): string {
  switch (route.view) {
    case "narrow":
      return narrowName(known, route.narrow);
    case "topics":
      return words.views.topicsOf({ name: channelName(known.channels, route.channelId) });
    case "channels":
      return words.shell.channels;
    case "groups":
      return words.shell.groups;
    case "unknown":
      return words.views.notFound;
    case "recent":
      return words.shell.inbox;
    default:
      return words.shell[route.view];
  }
}

function narrowName(known: Known, narrow: Narrow): string {
  const conversation = conversationIn(narrow);
  if (conversation && narrow.length <= 2) {
    return conversationName(known.users, known.channels, conversation, known.me);
  }
  const [first] = narrow;
  if (!first) return words.shell.feed;
  if (narrow.length === 1 && !first.negated) {
    if (first.operator === "channel")
      return `#${channelName(known.channels, Number(first.operand))}`;
    if (first.operator === "is" && first.operand === "mentioned") return words.shell.mentions;
    if (first.operator === "is" && first.operand === "starred") return words.shell.starred;
    if (first.operator === "is" && first.operand === "dm") return words.shell.directs;
  }
  return searchText(narrow, known);
}
