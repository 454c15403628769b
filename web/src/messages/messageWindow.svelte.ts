/**
 * A list of messages as one goes through it: which part of it is in the page, which place it keeps,
 * what is fetched next, what was seen. The part in the page moves along with what one looks at.
 */

import { untrack } from "svelte";
import type { App } from "../app";
import { keyOf } from "../data/conversations";
import { LONGEST, placeOf, type MessageList } from "../data/lists";
import {
  conversationIn,
  fragmentOf,
  isOfChannel,
  nameOf,
  narrowOf,
  type Narrow,
} from "../data/narrow";
import { firstUnread, isLookedThrough, readsBySeeing, type Place } from "../data/opening";
import { Heights } from "../data/rows";
import { keepBounded, open, type Anchor } from "../live/history";
import { readMuch } from "../live/actions";
import { readMarkerOf } from "../live/markRead.svelte";
import { isPassing, told } from "../wire/http";
import { Scroller } from "./scroller";
import { Prefetch } from "./prefetch";

/** How many messages are in the page before and after the one at the window's top, at first. */
const BEFORE = 14;
const AFTER = 28;
/** So many more where these do not fill it; never more than so many. */
const MORE = 16;
const MOST = 160;
/** The part in the page moves after so many. */
const DRIFT = 8;
const SEEN_AFTER = 200;
/** How long until what could not be fetched is asked for again, at first and at most, in ms. */
const RETRY = { first: 2000, longest: 30_000 };

/** Where one was in each list, for coming back. */
const places = new Map<string, Place>();

type Target = { id: number; how: "unread" | "near" | Place } | "end";

export class MessageWindow {
  readonly name: string;
  readonly list: MessageList | undefined = $derived.by(() => this.app.store.lists.get(this.name));
  readonly ids: readonly number[] = $derived(this.list?.ids ?? []);

  /** The message around which the page has some. */
  focus = $state<number | null>(null);
  /** Where to go as soon as it is in the page. */
  target = $state.raw<Target | null>(null);
  marker = $state<number | null>(null);
  lit = $state<number | null>(null);
  /** Whether one is somewhere before the end. */
  away = $state(false);
  /** The message at the window's top. */
  top = $state(0);
  opening = $state(true);
  trouble = $state("");

  #reach = $state({ before: BEFORE, after: AFTER });
  readonly start = $derived(Math.max(0, this.#at - this.#reach.before));
  readonly end = $derived(Math.min(this.ids.length, this.#at + this.#reach.after));

  readonly heights = new Heights();
  scroller: Scroller | null = null;
  /** How often it was asked to go somewhere: only the last counts. */
  #goings = 0;
  /** Whether there is nothing yet that one could go through while it is opened. */
  #isEmpty = true;
  /** Nobody looks at it any more: what was asked for comes too late. */
  #left = false;
  #prefetch: Prefetch;
  #seenTimer: ReturnType<typeof setTimeout> | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  /** The message that one came for. */
  #near: number | undefined;

  constructor(
    private readonly app: App,
    private readonly narrow: Narrow,
  ) {
    this.name = nameOf(narrow);
    this.#prefetch = new Prefetch(app.store, narrow, {
      failed: (error) => this.#failed(error),
      again: () => this.follow(),
    });
  }

  get #at(): number {
    return this.focus === null ? this.ids.length : placeOf(this.ids, this.focus);
  }

  /** Go where one should begin: a message, what is unread, where one was, or the newest. */
  async begin(near: number | undefined): Promise<void> {
    const { store } = this.app;
    this.#near = near;
    const unread = isLookedThrough(this.narrow)
      ? null
      : firstUnread(this.narrow, this.list, store.data.unread);
    if (this.marker === null) this.marker = unread;
    this.#isEmpty = !this.list;
    const place = places.get(this.name);
    let anchor: Anchor = "newest";
    let how: "unread" | "near" | Place = "near";
    if (near !== undefined) anchor = near;
    else if (unread !== null) [anchor, how] = [unread, "unread"];
    else if (place && !place.atEnd) [anchor, how] = [place.id, place];
    else if (!this.list && !isLookedThrough(this.narrow) && store.data.unread.where.size) {
      [anchor, how] = ["first_unread", "unread"];
    }
    await this.#go(anchor, how, near !== undefined);
    await this.#goAfter(near);
  }

  /** Go where a topic, or the message that one came for, is by now, if it is not here. */
  async #goAfter(near: number | undefined): Promise<void> {
    // What is derived for a view is not to be asked for after it.
    if (this.#left) return;
    const { list, narrow } = this;
    const topic = isOfChannel(narrow) ? conversationIn(narrow) : null;
    if (this.trouble || !list || list.stale || topic?.kind !== "topic") return;
    if (near === undefined ? list.ids.length || !list.foundOldest : list.ids.includes(near)) return;
    try {
      const { whereabouts } = await import("../live/whereabouts");
      const now = await whereabouts(this.app.store, topic, near);
      if (this.#left || near !== this.#near || !now || keyOf({ ...topic, ...now }) === keyOf(topic))
        return;
      const { data } = this.app.store;
      this.app.router.replace(fragmentOf(narrowOf({ ...topic, ...now }), data, near));
    } catch {
      // What is not there, or cannot be asked for now, leads nowhere else.
    }
  }

  /** To the end, wherever one is. */
  async toEnd(): Promise<void> {
    await this.#go("newest", "near", false);
  }

  /** To the end, and what one jumps over is read as if it had been scrolled past. */
  async passToEnd(): Promise<void> {
    await this.toEnd();
    if (this.#reads) void readMuch(this.app, (marker) => marker.readList(this.narrow));
  }

  /** To what one has just written, below the newest that there is. */
  toPending(): void {
    if (this.#left) return;
    if (this.list && !this.list.stale && this.list.foundNewest) void this.toEnd();
    else this.scroller?.toEnd();
  }

  /** To the first message of all. */
  async toBeginning(): Promise<void> {
    await this.#go("oldest", "near", false);
  }

  async #go(anchor: Anchor, how: "unread" | "near" | Place, light: boolean): Promise<void> {
    if (this.#left) return;
    const { list } = this;
    const going = (this.#goings += 1);
    const isWanted = () => going === this.#goings && !this.#left;
    const isHere =
      list &&
      !list.stale &&
      (anchor === "newest"
        ? list.foundNewest
        : typeof anchor === "number" &&
          (list.ids[0] ?? Infinity) <= anchor &&
          anchor <= (list.ids.at(-1) ?? 0));
    if (isHere) return this.#aim(anchor, list.ids.at(-1) ?? null, how, light);
    this.trouble = "";
    try {
      const found = await open(this.app.store, this.narrow, anchor, isWanted);
      if (isWanted()) this.#aim(anchor, found, how, light);
    } catch (error) {
      if (!isWanted()) return;
      // Without the server one reads what there is.
      if (isPassing(error) && this.ids.length && !this.app.connection.online) {
        this.#aim(anchor, this.ids.at(-1) ?? null, how, light);
      } else this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (this.#left) return;
    this.trouble = told(error);
    this.opening = false;
    if (!isPassing(error)) return;
    const pause = Math.min(RETRY.longest, RETRY.first * 2 ** this.#failures);
    this.#failures += 1;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => void this.again(), pause);
  }

  #aim(anchor: Anchor, found: number | null, how: "unread" | "near" | Place, light: boolean): void {
    const { ids } = this;
    const id = typeof anchor === "number" ? anchor : found;
    const isAtEnd = anchor === "first_unread" && id !== null && !this.#isUnread(id);
    this.opening = false;
    this.#failures = 0;
    const here = ids[Math.min(placeOf(ids, id ?? 0), ids.length - 1)];
    if (here === undefined) return;
    if (anchor === "newest" || id === null || isAtEnd) {
      this.focus = ids[Math.max(0, ids.length - BEFORE)] ?? here;
      this.target = "end";
      return;
    }
    if (anchor === "first_unread") this.marker ??= here;
    this.focus = here;
    this.target = { id: here, how };
    if (light) this.lit = here;
  }

  #isUnread(id: number): boolean {
    return this.app.store.data.unread.where.has(id);
  }

  /** After anything in the page has changed: be where one was, or is going. */
  settle(): void {
    const { scroller, target } = this;
    if (!scroller || this.#left) return;
    scroller.showsEnd = this.showsEnd;
    if (target === "end") {
      scroller.toEnd();
      this.target = null;
    } else if (target) {
      const row = scroller.row(target.id);
      if (row) {
        scroller.put(target.id, this.#topFor(target.how, scroller, row));
        this.target = null;
      }
    } else if (!scroller.keep()) this.#lost();
    for (const row of scroller.rows.children) {
      this.heights.set(scroller.idOf(row), (row as HTMLElement).offsetHeight);
    }
    this.follow();
  }

  #topFor(how: "unread" | "near" | Place, { frame }: Scroller, row: HTMLElement): number {
    if (typeof how === "object") return how.top;
    const height = frame.clientHeight;
    const spare = Math.max(0, height - row.offsetHeight);
    return how === "unread" ? Math.min(spare, height * 0.2) : spare / 3;
  }

  /** The message that kept its place is not in the page any more: the next one does. */
  #lost(): void {
    const held = this.scroller?.held;
    const { ids } = this;
    const id = held && ids[Math.min(placeOf(ids, held.id), ids.length - 1)];
    if (!held || !id || this.opening) return;
    this.focus = id;
    this.target = { id, how: { id, top: held.top, atEnd: false } };
  }

  /** Whether the last message that there is, is in the page. */
  get showsEnd(): boolean {
    return this.end >= this.ids.length && (this.list?.foundNewest ?? false);
  }

  /** The list is about to change. */
  beforeChange(): void {
    if (!this.target) this.scroller?.beforeChange();
  }

  /** One has scrolled, or it was done for one. */
  scrolled(): void {
    const { scroller } = this;
    if (!scroller || this.target || this.#left) return;
    const { ids } = this;
    scroller.keep();
    const lowest = scroller.rows.lastElementChild as HTMLElement | null;
    const isAbove = lowest !== null && scroller.topOf(lowest) < 0;
    const isBeyond = isAbove ? this.end < ids.length : this.start > 0;
    if (ids.length && scroller.first === null && isBeyond) this.#land();
    else this.follow();
  }

  /** Go on where none of the rows in the page is: in the room that others would take. */
  #land(): void {
    const { scroller, ids } = this;
    if (!scroller) return;
    const { scrollTop } = scroller.frame;
    const at = this.heights.at(ids, scrollTop);
    const id = ids[at] ?? 0;
    const top = Math.min(0, this.heights.between(ids, 0, at) - scrollTop);
    this.focus = id;
    this.target = { id, how: { id, top, atEnd: false } };
  }

  /** What is in the page follows what one looks at, and so does what is fetched and read. */
  follow(): void {
    const { scroller } = this;
    // What is derived is not there any more once nobody looks at it.
    if (!scroller || this.target || this.#left) return;
    const { ids } = this;
    // What has just come is not followed before it is known where in it one begins.
    if (this.opening && this.#isEmpty) return;
    this.away = !scroller.atEnd;
    this.top = scroller.held?.id ?? 0;
    if (ids.length > LONGEST) {
      // What is far away is let go of, so that a long day does not fill the memory.
      const here = scroller.atEnd ? ids.at(-1) : this.top;
      keepBounded(this.app.store, this.name, here ?? 0);
      this.heights.keep(this.ids);
      return;
    }
    const at = scroller.atEnd ? Math.max(0, ids.length - BEFORE) : placeOf(ids, this.top);
    const spare = scroller.spare();
    const little = scroller.frame.clientHeight / 2;
    const reach = this.#reach;
    if (this.start > 0 && spare.above < little && reach.before < MOST) reach.before += MORE;
    if (this.end < ids.length && spare.below < little && reach.after < MOST) reach.after += MORE;
    const isAll = this.start === 0 && this.end >= ids.length;
    const isEnd = scroller.atEnd && this.end < ids.length;
    if (!isAll && (isEnd || Math.abs(at - this.#at) > DRIFT)) {
      this.focus = ids[Math.min(at, ids.length - 1)] ?? null;
    }
    this.#fetch(at);
    this.#seenTimer ??= setTimeout(() => {
      this.#seenTimer = undefined;
      this.#see();
    }, SEEN_AFTER);
  }

  #fetch(at: number): void {
    const { list, scroller } = this;
    if (!list || list.stale || this.opening || this.trouble) return;
    const lowest = scroller?.firstBelow(scroller.frame.clientHeight - 1);
    const lastAt = lowest ? placeOf(list.ids, scroller?.idOf(lowest) ?? 0) : list.ids.length;
    this.#prefetch.keep(list, at, lastAt);
  }

  /** Go on after something could not be fetched. */
  async again(): Promise<void> {
    clearTimeout(this.#retryTimer);
    if (!this.trouble || this.#left) return;
    this.trouble = "";
    if (!this.list) await this.begin(this.#near);
    else if (this.list.stale) await this.refresh();
    else this.follow();
  }

  /** Ask again for what may not be right any more, around the place where one is. */
  async refresh(): Promise<void> {
    const { scroller } = this;
    const anchor = scroller?.atEnd ? "newest" : (scroller?.held?.id ?? "newest");
    const last = this.ids.at(-1);
    try {
      await open(this.app.store, this.narrow, anchor);
      if (last !== undefined && !this.#left) await this.#goAlong(last);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Nothing is left of the topic that was there: it may have gone elsewhere unheard. */
  async #goAlong(last: number): Promise<void> {
    const topic = isOfChannel(this.narrow) ? conversationIn(this.narrow) : null;
    if (topic?.kind !== "topic" || this.ids.some((id) => id <= last)) return;
    try {
      const { goAfter } = await import("../live/whereabouts");
      await goAfter(this.app.store, topic, last);
    } catch {
      // What cannot be asked for now leads nowhere else.
    }
  }

  #see(): void {
    const { store } = this.app;
    const reading = readMarkerOf(store);
    const isLooking = document.visibilityState === "visible" && document.hasFocus();
    if (!isLooking || !this.scroller || this.target || !this.#reads) return;
    reading.seen(this.scroller.seen());
  }

  /** Whether what is seen here becomes read. */
  get #reads(): boolean {
    const { store } = this.app;
    const policy = store.data.settings.web_mark_read_on_scroll_policy;
    return readMarkerOf(store).paused !== this.name && readsBySeeing(this.narrow, policy);
  }

  leave(): void {
    this.#left = true;
    clearTimeout(this.#seenTimer);
    clearTimeout(this.#retryTimer);
    const place = this.scroller?.place();
    if (place && !this.target) places.set(this.name, place);
    const reading = readMarkerOf(this.app.store);
    untrack(() => {
      if (reading.paused === this.name) reading.paused = null;
    });
  }
}
