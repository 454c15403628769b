/** Global keyboard shortcuts. */

import { tick } from "svelte";
import type { App } from "../app";
import { conversationOf } from "../data/conversations";
import { channelNarrow, narrowOf } from "../data/narrow";
import { toggleFollowed, toggleMuted } from "../live/actions";
import { shownElement } from "../ui/dom";
import { bufferTyping } from "../ui/typeAhead";
import { layout, searchBox } from "./layout.svelte";
import {
  currentChannel,
  currentConversation,
  goToChannel,
  goToNext,
  topicsFragment,
} from "./navigation";
import { register } from "./shortcuts";

export function registerKeys(app: App): () => void {
  const { router, store } = app;

  /** The conversation in view, or that of the selected message. */
  const targetConversation = () => {
    const current = currentConversation(app.router.route);
    if (current) return current;
    const chosen = shownElement("article.selected[data-message]");
    const message = store.data.messages.get(Number(chosen?.dataset["message"]));
    return message ? conversationOf(message.key, store.data.topicNames) : null;
  };

  const withTopic = (toggle: typeof toggleMuted) => () => {
    const current = targetConversation();
    if (current?.kind !== "topic") return false;
    void toggle(app, current.channelId, current.topic);
    return true;
  };

  return register(
    {
      "/": () => searchBox.open("search"),
      "Control+k": () => searchBox.open("jump"),
      i: () => router.go("inbox"),
      I: () => router.go("inbox"),
      t: () => router.go("recent"),
      v: () => router.go("feed"),
      "*": () => router.go("narrow/is/starred"),
      d: () => router.go("drafts"),
      l: () => router.go("later"),
      P: () => router.go("narrow/is/dm"),
      n: () => goToNext(app, "topic"),
      p: () => goToNext(app, "direct"),
      a: () => goToChannel(app, -1),
      A: () => goToChannel(app, -1),
      D: () => goToChannel(app, 1),
      s: () => {
        const current = targetConversation();
        if (!current) return false;
        router.toNarrow(narrowOf(current));
        return true;
      },
      S: () => {
        const current = targetConversation();
        const channelId =
          current?.kind === "topic" ? current.channelId : currentChannel(app.router.route);
        if (channelId === null) return false;
        router.toNarrow(channelNarrow(channelId));
        return true;
      },
      T: () => {
        const channelId = currentChannel(app.router.route);
        if (channelId === null) return false;
        router.go(topicsFragment(app, channelId));
        return true;
      },
      w: () => void findPeople(),
      M: withTopic(toggleMuted),
      F: withTopic(toggleFollowed),
      "?": () => void (layout.help = true),
      "[": () => layout.toggleLeft(),
      "]": () => layout.togglePeople(),
      g: () => void openOwnMenu(),
      Escape: (event) => escape(app, event),
    },
    { general: true },
  );
}

/** It's in the sidebar. */
async function openOwnMenu(): Promise<void> {
  layout.showLeft();
  await tick();
  document.getElementById("own-menu")?.click();
}

/** Focus the user list's filter once it's mounted. */
async function findPeople(): Promise<void> {
  layout.showPeople();
  const typed = bufferTyping(() => layout.leave());
  try {
    await import("./People.svelte");
    await tick();
    document.querySelector<HTMLInputElement>("#find-people")?.select();
    typed.ready();
  } catch {
    // The shell shows the error.
    typed.canceled();
  }
}

/** Close overlays; then go home if the setting says so. */
function escape({ router, store }: App, event: KeyboardEvent): boolean {
  if (layout.leave()) return true;
  const { target } = event;
  if (target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) {
    target.blur();
    return true;
  }
  if (store.settings.web_escape_navigates_to_home_view === false) return false;
  router.go(router.home);
  return true;
}
