/** The current view's name, for the window title and screen readers. */

import type { Data } from "../data/data";
import { channelName, conversationName } from "../data/names";
import { conversationIn, type Narrow } from "../data/narrow";
import { textOf } from "../data/search";
import type { Route } from "../live/router.svelte";
import { words } from "../words/index.svelte";

type Known = Pick<Data, "users" | "channels" | "me">;

export function placeName(known: Known, route: Route): string {
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
      return words.views.unknown;
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
  return textOf(narrow, known);
}
