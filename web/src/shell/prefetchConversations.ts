/** Loads conversations that are likely to be opened next. */

import type { App } from "../app";
import { nameOf, narrowOf } from "../data/narrow";
import { nextUnread } from "../data/inbox";
import type { Narrow } from "../data/conversations";
import { firstUnread, opensAtNewest } from "../data/readPosition";
import { loadAround } from "../live/messages";
import { keptViews } from "./keptViews.svelte";
import { currentKey } from "./navigation";
import { savesData } from "./prefetch";

/** How long the pointer or the focus stays on a link before its conversation is loaded, in ms. */
const REST = 120;
/** How long a conversation is shown before the next unread one is loaded, in ms. */
const READING = 1500;
/** Minimum time between two loads, in ms. */
const INTERVAL = 1000;
/** Delay before trying again during another load, in ms. */
const RETRY = 250;

/** Load the conversation of a link that the pointer or the focus rests on, and the next unread topic.
 * Returns a function that stops. */
export function prefetchConversations(app: App): () => void {
  if (savesData()) return () => undefined;
  const { store, router, connection } = app;
  const listening = new AbortController();
  const { signal } = listening;
  let linkTimer: ReturnType<typeof setTimeout> | undefined;
  let unreadTimer: ReturnType<typeof setTimeout> | undefined;
  let isLoading = false;
  let nextAt = 0;

  const isBusy = () => isLoading || performance.now() < nextAt;

  function restOn(event: Event): void {
    clearTimeout(linkTimer);
    // A touch opens the link or scrolls the page.
    if ((event as PointerEvent).pointerType === "touch") return;
    const link = (event.target as Element).closest<HTMLAnchorElement>('a[href^="#narrow/"]');
    if (link) loadLinked(link, REST);
  }

  function loadLinked(link: HTMLAnchorElement, delay: number): void {
    linkTimer = setTimeout(() => {
      if (isBusy()) return loadLinked(link, RETRY);
      const route = router.read(link.hash.slice(1));
      if (route.view === "narrow" && route.near === undefined) void load(route.narrow);
    }, delay);
  }

  function loadNextUnread(delay: number): void {
    clearTimeout(unreadTimer);
    unreadTimer = setTimeout(() => {
      if (isBusy()) return loadNextUnread(RETRY);
      const next = document.hidden ? null : nextUnread(store.data, currentKey(app), "topic");
      if (next) void load(narrowOf(next.conversation));
    }, delay);
  }

  async function load(narrow: Narrow): Promise<void> {
    const name = nameOf(narrow);
    // Once it's opened, its view loads it.
    const isWanted = () => !store.shownLists.includes(name);
    if (!isWanted()) return;
    if (store.data.lists.get(name)?.stale === false) return prepare(narrow);
    if (!connection.online || connection.updating) return;
    isLoading = true;
    nextAt = performance.now() + INTERVAL;
    const { unread } = store.data;
    const start = opensAtNewest(narrow) ? "newest" : firstUnread(narrow, undefined, unread);
    try {
      await loadAround(store, narrow, start ?? "first_unread", isWanted);
      if (isWanted()) prepare(narrow);
    } catch {
      // It's loaded when it's opened, which shows the error.
    } finally {
      isLoading = false;
    }
  }

  /** Render it, too: on a slow processor, that takes longer than to load it. */
  function prepare(narrow: Narrow): void {
    if (!document.hidden) keptViews.prepare(narrow);
  }

  const navigated = () => loadNextUnread(READING);
  document.addEventListener("focusin", restOn, { signal });
  document.addEventListener("pointerover", restOn, { signal });
  window.addEventListener("hashchange", navigated, { signal });
  navigated();
  return () => {
    listening.abort();
    clearTimeout(linkTimer);
    clearTimeout(unreadTimer);
  };
}
