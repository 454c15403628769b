/** Loads conversations that are likely to be opened next. */

import type { App } from "../app";
import { nameOf, narrowOf } from "../data/narrow";
import { nextUnread } from "../data/inbox";
import type { Narrow } from "../data/conversations";
import { firstUnread, opensAtNewest } from "../data/readPosition";
import { loadAround } from "../live/messages";
import { currentKey } from "./navigation";
import { savesData } from "./prefetch";

/** How long the pointer or the focus rests on a link, in ms. */
const REST = 120;
/** How long a conversation is shown before the next unread one is loaded, in ms. */
const PAUSE = 1500;
/** At most one request in this time, in ms. */
const INTERVAL = 1000;

/** Load the conversation of a link that the pointer or the focus rests on, and the next unread topic.
 * Returns a function that stops. */
export function prefetchConversations(app: App): () => void {
  if (savesData()) return () => undefined;
  const { store, router, connection } = app;
  const listening = new AbortController();
  const { signal } = listening;
  let resting: ReturnType<typeof setTimeout> | undefined;
  let pausing: ReturnType<typeof setTimeout> | undefined;
  let isLoading = false;
  let nextAt = 0;

  function rest({ target }: Event): void {
    clearTimeout(resting);
    const link = (target as Element).closest<HTMLAnchorElement>('a[href^="#narrow/"]');
    if (!link) return;
    resting = setTimeout(() => {
      const route = router.read(link.hash.slice(1));
      if (route.view === "narrow" && route.near === undefined) void load(route.narrow);
    }, REST);
  }

  function pause(): void {
    clearTimeout(pausing);
    pausing = setTimeout(() => {
      const next = document.hidden ? null : nextUnread(store.data, currentKey(app), "topic");
      if (next) void load(narrowOf(next.conversation));
    }, PAUSE);
  }

  async function load(narrow: Narrow): Promise<void> {
    const { lists, unread } = store.data;
    const isKnown = lists.get(nameOf(narrow))?.stale === false;
    if (isKnown || isLoading || performance.now() < nextAt) return;
    if (!connection.online || connection.updating) return;
    isLoading = true;
    nextAt = performance.now() + INTERVAL;
    const start = opensAtNewest(narrow) ? "newest" : firstUnread(narrow, undefined, unread);
    try {
      await loadAround(store, narrow, start ?? "first_unread");
    } catch {
      // It's loaded when it's opened, which shows the error.
    } finally {
      isLoading = false;
    }
  }

  document.addEventListener("focusin", rest, { signal });
  document.addEventListener("pointerover", rest, { signal });
  window.addEventListener("hashchange", pause, { signal });
  pause();
  return () => {
    listening.abort();
    clearTimeout(resting);
    clearTimeout(pausing);
  };
}
