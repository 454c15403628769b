/** The current view, from URL fragments such as `#inbox` or `#narrow/channel/7-general`. */

import { untrack } from "svelte";
import { channelIn, fragmentOf, placeIn, type Place } from "../data/narrow";
import { type Narrow } from "../data/conversations";
import { afterPaint } from "../ui/afterPaint";
import type { Store } from "./store.svelte";

export type Route =
  | { view: "inbox" | "recent" | "feed" | "drafts" | "scheduled" | "later" }
  | ({ view: "narrow" } & Place)
  | { view: "catchUp" | "files"; narrow: Narrow }
  | { view: "topics"; channelId: number }
  /** Pages of settings; `path` is the rest of the fragment. */
  | { view: "settings" | "organization" | "channels" | "groups"; path: string[] }
  | { view: "unknown" };

const PLAIN = new Set(["inbox", "recent", "feed", "drafts", "scheduled", "later"]);
const PAGES = new Set(["settings", "organization", "channels", "groups"]);
const HOME: Record<string, string> = {
  inbox: "inbox",
  recent: "recent",
  recent_topics: "recent",
  all_messages: "feed",
};

export class Router {
  fragment = $state("");
  /** Increases when the user opens the current message again. */
  asked = $state(0);
  readonly route: Route = $derived.by(() => {
    const { fragment } = this;
    // Routes depend on channels, not on every event.
    void [this.store.channels, this.store.settings.web_home_view];
    return untrack(() => this.read(fragment));
  });

  /** The fragment of a view that's shown, but isn't in the history yet, and the URL's until then. */
  #pending: { fragment: string; from: string } | null = null;
  #stopped = new AbortController();

  constructor(private readonly store: Store) {
    this.fragment = current();
    const { signal } = this.#stopped;
    window.addEventListener("hashchange", () => (this.fragment = this.#current), { signal });
    window.addEventListener("click", (event) => this.#clicked(event), { signal });
  }

  stop(): void {
    this.#push();
    this.#stopped.abort();
  }

  /** Follow links without waiting for the browser's event. */
  #clicked(event: MouseEvent): void {
    const { defaultPrevented, button, ctrlKey, metaKey, shiftKey, altKey } = event;
    if (defaultPrevented || button || ctrlKey || metaKey || shiftKey || altKey) return;
    const link = (event.target as Element).closest<HTMLAnchorElement>('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    this.go(link.hash.slice(1));
  }

  /** The user's home view. */
  get home(): string {
    return HOME[this.store.settings.web_home_view] ?? "inbox";
  }

  go(fragment: string): void {
    if (fragment === this.#current) return;
    this.#push();
    this.#pending = { fragment, from: current() };
    this.fragment = fragment;
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    // Adding a history entry takes the browser longer than the client needs to show a view.
    afterPaint(() => this.#push());
  }

  /** Replace the fragment without a history entry. */
  replace(fragment: string): void {
    if (this.#isPending) this.#pending = { fragment, from: current() };
    else window.history.replaceState(window.history.state, "", `#${fragment}`);
    this.fragment = fragment;
  }

  /** Whether a view isn't in the history yet, and the browser hasn't opened another one since. */
  get #isPending(): boolean {
    return this.#pending?.from === current();
  }

  get #current(): string {
    return this.#pending && this.#isPending ? this.#pending.fragment : current();
  }

  /** Add the pending view to the history. */
  #push(): void {
    const pending = this.#isPending ? this.#pending : null;
    this.#pending = null;
    if (!pending) return;
    const { fragment } = pending;
    try {
      // Unlike a new fragment, it computes no layout for an element to scroll to.
      window.history.pushState(null, "", `#${fragment}`);
    } catch {
      // Safari allows this only a number of times in a row.
      window.location.hash = fragment;
    }
    this.fragment = current();
  }

  toNarrow(narrow: Narrow, near?: number): void {
    const fragment = fragmentOf(narrow, this.store.data, near);
    if (near !== undefined && fragment === this.#current) this.asked += 1;
    this.go(fragment);
  }

  /** The route of a fragment. */
  read(fragment: string): Route {
    const [first = "", ...rest] = (fragment || this.home).split("/");
    if (first === "narrow") {
      const place = placeIn(fragment, this.store.data);
      const channelId = place && channelIn(place.narrow);
      const isKnown = place && (channelId === null || this.store.channels.has(channelId));
      return isKnown ? { view: "narrow", ...place } : { view: "unknown" };
    }
    if (first === "catch-up" || first === "files") {
      const place = rest.length ? placeIn(rest.join("/"), this.store.data) : { narrow: [] };
      const view = first === "files" ? first : "catchUp";
      return place ? { view, narrow: place.narrow } : { view: "unknown" };
    }
    if (first === "all_messages") return { view: "feed" };
    // Zulip's name, which other programs link to.
    if (first === "reminders") return { view: "later" };
    if (PLAIN.has(first)) return { view: first } as Route;
    if (PAGES.has(first)) return { view: first, path: rest } as Route;
    if (first === "topics" && rest[0] === "channel") {
      const id = Number.parseInt(rest[1] ?? "", 10);
      if (this.store.channels.has(id)) return { view: "topics", channelId: id };
    }
    return { view: "unknown" };
  }
}

function current(): string {
  return window.location.hash.replace(/^#/, "");
}
