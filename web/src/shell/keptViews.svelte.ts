/** Views that stay rendered while another one is shown, so that they open faster. */

import type { ViewState } from "../app";
import { ALL, conversationIn, isOfChannel, nameOf, narrowOf, type Place } from "../data/narrow";
import { keyOf, wholeMove, type Narrow } from "../data/conversations";
import type { Route } from "../live/router.svelte";
import type { ServerEvent } from "../wire/events";

type KeptRoute = ({ view: "narrow" } & Place) | { view: "feed" | "inbox" | "recent" };

/** The maximum numbers of hidden conversations that were opened, and of others. */
const MAX_OPENED = 6;
const MAX_PREPARED = 2;
/** The maximum number of views while they are opened faster than they are painted. */
const MAX_UNTRIMMED = 16;

export class KeptView implements ViewState {
  shown = $state(false);
  opened = $state(false);
  /** The latest route to it. */
  route = $state.raw() as KeptRoute;

  constructor(route: KeptRoute) {
    this.route = route;
  }

  get view(): KeptRoute["view"] {
    return this.route.view;
  }

  /** The narrow of messages; null for the inbox. */
  get narrow(): Narrow | null {
    return narrowOfRoute(this.route);
  }

  /** The message to show first. */
  get near(): number | undefined {
    return this.route.view === "narrow" ? this.route.near : undefined;
  }
}

export class KeptViews {
  /** In the order in which they were first opened, so that none moves in the page. */
  all = $state.raw<readonly KeptView[]>([]);
  /** The one that's shown; null if the route has another kind of view. */
  shown = $state.raw<KeptView | null>(null);
  /** The last used one comes last. */
  #used: readonly KeptView[] = [];

  /** Show the view of a route. */
  open(route: Route): void {
    const view = isKept(route) ? (this.#find(narrowOfRoute(route)) ?? this.#add(route)) : null;
    if (this.shown && this.shown !== view) this.shown.shown = false;
    this.shown = view;
    if (!view) return;
    view.route = route as KeptRoute;
    view.shown = view.opened = true;
    this.#used = [...this.#used.filter((other) => other !== view), view];
    if (this.all.length > MAX_UNTRIMMED) this.trim();
  }

  /** Render a conversation that's likely to be opened next. */
  prepare(narrow: Narrow): void {
    if (!this.#find(narrow)) this.#add({ view: "narrow", narrow });
    this.trim();
  }

  /** Drop the least recently used conversations. */
  trim(): void {
    const hidden = this.#used.filter((view) => view !== this.shown && view.narrow);
    const opened = hidden.filter((view) => view.opened);
    const prepared = hidden.filter((view) => !view.opened);
    const dropped = [
      ...opened.slice(0, Math.max(0, opened.length - MAX_OPENED)),
      ...prepared.slice(0, Math.max(0, prepared.length - MAX_PREPARED)),
    ];
    if (dropped.length) this.#drop((view) => dropped.includes(view));
  }

  /** Drop hidden views. */
  dropHidden(isDropped: (view: KeptView) => boolean): void {
    const isLost = (view: KeptView) => view !== this.shown && isDropped(view);
    if (this.all.some(isLost)) this.#drop(isLost);
  }

  /** A topic that moves as a whole keeps its view, and what's being written in it. `channels`: those
   * that the user knows. */
  follow(event: ServerEvent, channels: ReadonlyMap<number, unknown>): void {
    const move = wholeMove(event);
    if (!move || !channels.has(move.to.channelId)) return;
    const view = this.all.find(({ narrow }) => narrow && topicKeyOf(narrow) === move.from);
    if (!view) return;
    const narrow = narrowOf(move.to);
    const found = this.#find(narrow);
    const other = found === view ? undefined : found;
    if (other) this.#drop((one) => one === (view === this.shown ? other : view));
    if (!other || view === this.shown) view.route = { view: "narrow", narrow };
  }

  #find(narrow: Narrow | null): KeptView | undefined {
    const name = narrow && nameOf(narrow);
    return this.all.find((view) => (view.narrow && nameOf(view.narrow)) === name);
  }

  #add(route: KeptRoute): KeptView {
    const view = new KeptView(route);
    this.all = [...this.all, view];
    this.#used = [...this.#used, view];
    return view;
  }

  #drop(isDropped: (view: KeptView) => boolean): void {
    this.all = this.all.filter((view) => !isDropped(view));
    this.#used = this.#used.filter((view) => !isDropped(view));
  }
}

function isKept(route: Route): route is KeptRoute {
  return ["narrow", "feed", "inbox", "recent"].includes(route.view);
}

function narrowOfRoute(route: KeptRoute): Narrow | null {
  if (route.view === "narrow") return route.narrow;
  return route.view === "feed" ? ALL : null;
}

function topicKeyOf(narrow: Narrow): string | null {
  const conversation = isOfChannel(narrow) ? conversationIn(narrow) : null;
  return conversation && keyOf(conversation);
}

export const keptViews = new KeptViews();
