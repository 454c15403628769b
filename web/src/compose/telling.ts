/** Announces the state of pending messages that aren't in view. */

import type { App } from "../app";
import { conversationName } from "../data/names";
import { ALL, narrowOf, type Narrow } from "../data/narrow";
import { showsPending, type Pending } from "../data/sending";
import { words } from "../words/index.svelte";

/** Returns a function to call with all pending messages after each change. */
export function teller(app: App): (pending: readonly Pending[]) => void {
  let told = new Set<string>();
  return (pending) => {
    const before = told;
    told = new Set();
    for (const one of pending) {
      const what = newsOf(one);
      if (!what || told.has(what)) continue;
      told.add(what);
      if (!before.has(what)) tell(app, one);
    }
  };
}

/** A key for each announcement, so that it's made once. */
function newsOf({ localId, key, state, redirected, due }: Pending): string | null {
  if (state === "failed") return `failed ${localId}`;
  return redirected && due !== undefined ? `goes to ${key}` : null;
}

function tell({ store, router, toasts }: App, { key, to, state, trouble }: Pending): void {
  const shown = shownIn(router.route);
  const isSeen = shown !== null && showsPending(shown, key);
  const name = conversationName(store.users, store.channels, to, store.me);
  if (state !== "failed") {
    const action = {
      label: words.compose.goThere,
      run: () => router.toNarrow(narrowOf(to)),
    };
    toasts.note(words.messages.goesTo({ where: name }), isSeen ? undefined : action);
  } else if (!isSeen) {
    toasts.offer(words.messages.notSentTo({ where: name, why: trouble ?? "" }), {
      label: words.messages.show,
      run: () => router.go("drafts"),
    });
  }
}

function shownIn(route: App["router"]["route"]): Narrow | null {
  if (route.view === "narrow") return route.narrow;
  return route.view === "feed" ? ALL : null;
}
