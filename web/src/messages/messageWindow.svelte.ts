/** The view of a message list: which messages are rendered, the scroll position, what is loaded
 * next, and what was seen. The rendered part follows the scroll position. */

import { untrack } from "svelte";
import { heldWhile, type App, type ViewState } from "../app";
import { keyOf, wholeMove, type ConversationKey, type Narrow } from "../data/conversations";
import { MAX_LENGTH, sortedIndex, type MessageList } from "../data/lists";
import { conversationIn, fragmentOf, isOfChannel, nameOf, narrowOf } from "../data/narrow";
import {
  firstUnread,
  opensAtNewest,
  marksReadOnScroll,
  type ScrollPosition,
} from "../data/readPosition";
import { Heights } from "../data/rows";
import { trimList, loadAround } from "../live/messages";
import { markManyAsRead } from "../live/actions";
import { readMarkerOf } from "../live/markRead.svelte";
import { afterPaint } from "../ui/afterPaint";
import type { Anchor } from "../wire/early";
import type { ServerEvent } from "../wire/events";
import { isTransient, errorMessage } from "../wire/http";
import { Scroller } from "./scroller";
import { Prefetch } from "./prefetch";

/** Rendered messages before and after the top one: at first only what fills most windows. */
const FIRST_ROWS = { before: 4, after: 10 };
const ROWS = { before: 14, after: 28 };
/** More if these don't fill the view, and the maximum. */
const MORE_ROWS = 8;
const MAX_ROWS = 160;
/** The rendered part moves after this many messages. */
const DRIFT = 8;
const SEEN_AFTER = 200;
const LIT_FOR = 2500;
/** Retry delays in ms: first and longest. */
const RETRY_DELAYS = { first: 2000, longest: 30_000 };

/** Saved scroll positions by list. */
const places = new Map<string, ScrollPosition>();
/** Where a topic that moves was being read, until its list has another name. */
let moved: { key: ConversationKey; place: ScrollPosition | null } | null = null;

type Target = { id: number; how: "unread" | "near" | ScrollPosition } | "end";

export class MessageWindow {
  readonly name: string;
  readonly list: MessageList | undefined = $derived.by(
    heldWhile(
      () => this.held,
      () => this.app.store.lists.get(this.name),
    ),
  );
  readonly ids: readonly number[] = $derived(this.list?.ids ?? []);

  /** The message around which messages are rendered. */
  focus = $state<number | null>(null);
  /** Where to scroll once it's rendered. */
  target = $state.raw<Target | null>(null);
  marker = $state<number | null>(null);
  lit = $state<number | null>(null);
  /** Whether the user is away from the end. */
  away = $state(false);
  /** The message at the top of the view. */
  top = $state(0);
  opening = $state(true);
  /** Whether it's hidden and follows no changes. */
  held = $state(false);
  error = $state("");

  #reach = $state({ ...FIRST_ROWS });
  readonly start = $derived(Math.max(0, this.#at - this.#reach.before));
  readonly end = $derived(Math.min(this.ids.length, this.#at + this.#reach.after));

  /** Whether it has shown messages. If it's empty then, they were deleted or moved. */
  wasFilled = $state(false);
  readonly heights = new Heights();
  scroller: Scroller | null = null;
  /** Counts navigations: only the last applies. */
  #navigations = 0;
  /** Whether nothing is shown yet while opening. */
  #isEmpty = true;
  /** Whether offline data is shown, or nothing yet, until the server's first response. */
  #isTentative = false;
  /** Cancels a pending `#fill`. */
  #filling: (() => void) | undefined;
  #isPainted = false;
  /** Left: pending results are ignored. */
  #left = false;
  #prefetch: Prefetch;
  #litTimer: ReturnType<typeof setTimeout> | undefined;
  #seenTimer: ReturnType<typeof setTimeout> | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  /** The message in the URL. */
  #near: number | undefined;

  constructor(
    private readonly app: App,
    private readonly narrow: Narrow,
    private readonly view: ViewState,
  ) {
    this.name = nameOf(narrow);
    this.#prefetch = new Prefetch(app.store, narrow, {
      failed: (error) => this.#failed(error),
      again: () => this.follow(),
    });
  }

  /** Call when the list is rendered. */
  mount(scroller: Scroller): void {
    this.scroller = scroller;
    this.settle();
  }

  /** Call before the list is shown again, after `leave`. */
  resume(near: number | undefined): void {
    this.#left = false;
    this.#filling?.();
    this.#filling = undefined;
    this.held = false;
    this.marker = null;
    this.opening = true;
    this.wasFilled = false;
    this.error = "";
    void this.begin(near);
  }

  /** Call when the list is shown, and `leave` when it's hidden or removed. */
  enter(): void {
    const { store } = this.app;
    store.shownLists = [...store.shownLists, this.name];
    store.visitedLists.add(this.name);
    this.settle();
  }

  get #at(): number {
    return this.focus === null ? this.ids.length : sortedIndex(this.ids, this.focus);
  }

  /** Go to the initial position: a message, the first unread one, the saved position, or the
   * newest. */
  async begin(near: number | undefined): Promise<void> {
    const { store } = this.app;
    this.#near = near;
    const unread = opensAtNewest(this.narrow)
      ? null
      : firstUnread(this.narrow, this.list, store.data.unread);
    if (this.marker === null) this.marker = unread;
    this.#isEmpty = !this.list;
    const carried = moved?.key === this.#topicKey ? moved?.place : null;
    moved = null;
    const place = carried ?? places.get(this.name);
    let anchor: Anchor = "newest";
    let position: "unread" | "near" | ScrollPosition = "near";
    if (near !== undefined) anchor = near;
    else if (unread !== null && !carried) [anchor, position] = [unread, "unread"];
    else if (place && !place.atEnd) [anchor, position] = [place.id, place];
    else if (
      !this.list &&
      !carried &&
      !opensAtNewest(this.narrow) &&
      store.data.unread.where.size
    ) {
      [anchor, position] = ["first_unread", "unread"];
    }
    await this.#go(anchor, position, near !== undefined);
    await this.#followMove(near);
  }

  /** Keep the position if the topic moves: another list shows it then. */
  hear(event: ServerEvent): void {
    const move = wholeMove(event);
    const { shown } = this.view;
    // It may move again before another list shows it.
    const isHere = move?.from === this.#topicKey || (shown && move?.from === moved?.key);
    if (!move || !isHere) return;
    const place = this.scroller?.place() ?? null;
    if (shown) moved = { key: keyOf(move.to), place };
    else if (place) places.set(nameOf(narrowOf(move.to)), place);
  }

  get #topicKey(): ConversationKey | undefined {
    const conversation = isOfChannel(this.narrow) ? conversationIn(this.narrow) : null;
    return conversation ? keyOf(conversation) : undefined;
  }

  /** Follow the topic or message if it moved. */
  async #followMove(near: number | undefined): Promise<void> {
    // Derived values end with the view, and only the shown view may lead elsewhere.
    if (this.#left || !this.view.shown) return;
    const { list, narrow } = this;
    const topic = isOfChannel(narrow) ? conversationIn(narrow) : null;
    if (this.error || !list || list.stale || topic?.kind !== "topic") return;
    if (near === undefined ? list.ids.length || !list.foundOldest : list.ids.includes(near)) return;
    try {
      const { currentTopic } = await import("../live/movedTopics");
      const now = await currentTopic(this.app.store, topic, near);
      if (
        this.#left ||
        !this.view.shown ||
        near !== this.#near ||
        !now ||
        keyOf({ ...topic, ...now }) === keyOf(topic)
      )
        return;
      const { data } = this.app.store;
      this.app.router.replace(fragmentOf(narrowOf({ ...topic, ...now }), data, near));
    } catch {
      // Missing, or offline: stay.
    }
  }

  async toEnd(): Promise<void> {
    await this.#go("newest", "near", false);
  }

  /** Go to the end and mark everything skipped as read. */
  async passToEnd(): Promise<void> {
    await this.toEnd();
    if (this.#reads) void markManyAsRead(this.app, (marker) => marker.readList(this.narrow));
  }

  /** Scroll to the user's pending message. */
  toPending(): void {
    if (this.#left) return;
    if (this.list && !this.list.stale && this.list.foundNewest) void this.toEnd();
    else this.scroller?.toEnd();
  }

  async toBeginning(): Promise<void> {
    await this.#go("oldest", "near", false);
  }

  async #go(
    anchor: Anchor,
    position: "unread" | "near" | ScrollPosition,
    light: boolean,
  ): Promise<void> {
    if (this.#left) return;
    const { list } = this;
    if (this.app.connection.updating) {
      this.#isTentative = true;
      if (list) this.#aim(anchor, list.ids.at(-1) ?? null, position, light);
      return;
    }
    const navigation = (this.#navigations += 1);
    const isWanted = () => navigation === this.#navigations && !this.#left;
    const isHere =
      list &&
      !list.stale &&
      (anchor === "newest"
        ? list.foundNewest
        : typeof anchor === "number" &&
          (list.ids[0] ?? Infinity) <= anchor &&
          anchor <= (list.ids.at(-1) ?? 0));
    if (isHere) return this.#aim(anchor, list.ids.at(-1) ?? null, position, light);
    // A hidden list, such as of a topic that moved, loads once it's shown.
    if (!this.view.shown) {
      this.held = true;
      return;
    }
    this.error = "";
    try {
      const anchored = await loadAround(this.app.store, this.narrow, anchor, isWanted);
      if (isWanted()) this.#aim(anchor, anchored, position, light);
    } catch (error) {
      if (!isWanted()) return;
      // Offline: use what's loaded.
      if (isTransient(error) && this.ids.length && !this.app.connection.online) {
        this.#aim(anchor, this.ids.at(-1) ?? null, position, light);
      } else this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (this.#left) return;
    this.error = errorMessage(error);
    this.opening = false;
    if (!isTransient(error)) return;
    const pause = Math.min(RETRY_DELAYS.longest, RETRY_DELAYS.first * 2 ** this.#failures);
    this.#failures += 1;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => void this.again(), pause);
  }

  #aim(
    anchor: Anchor,
    anchored: number | null,
    position: "unread" | "near" | ScrollPosition,
    light: boolean,
  ): void {
    const { ids } = this;
    const id = typeof anchor === "number" ? anchor : anchored;
    const isAtEnd = anchor === "first_unread" && id !== null && !this.#isUnread(id);
    this.opening = false;
    this.#failures = 0;
    const visibleId = ids[Math.min(sortedIndex(ids, id ?? 0), ids.length - 1)];
    if (visibleId === undefined) return;
    if (anchor === "newest" || id === null || isAtEnd) {
      this.#renderAround(ids[Math.max(0, ids.length - FIRST_ROWS.after)] ?? visibleId);
      this.target = "end";
      return;
    }
    if (anchor === "first_unread") this.marker ??= visibleId;
    this.#renderAround(visibleId);
    this.target = { id: visibleId, how: position };
    if (light) this.#light(visibleId);
  }

  /** Render the rows around a message, unless they are. */
  #renderAround(id: number): void {
    const at = sortedIndex(this.ids, id);
    const isFirst = this.start === 0 || at - FIRST_ROWS.before >= this.start;
    const isLast = this.end >= this.ids.length || at + FIRST_ROWS.after <= this.end;
    if (this.focus !== null && isFirst && isLast) return;
    this.focus = id;
    this.#reach = { ...FIRST_ROWS };
    this.#isPainted = false;
    this.#filling?.();
    this.#filling = undefined;
  }

  #isUnread(id: number): boolean {
    return this.app.store.data.unread.where.has(id);
  }

  /** After any layout change: restore the position or continue to the target. */
  settle(): void {
    const { scroller, target } = this;
    if (!scroller || this.#left) return;
    if (this.ids.length) this.wasFilled = true;
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

  #topFor(
    position: "unread" | "near" | ScrollPosition,
    { frame }: Scroller,
    row: HTMLElement,
  ): number {
    if (typeof position === "object") return position.top;
    const height = frame.clientHeight;
    const spare = Math.max(0, height - row.offsetHeight);
    return position === "unread" ? Math.min(spare, height * 0.2) : spare / 3;
  }

  /** The anchor message is no longer rendered: use the next one. */
  #lost(): void {
    const held = this.scroller?.held;
    const { ids } = this;
    const id = held && ids[Math.min(sortedIndex(ids, held.id), ids.length - 1)];
    if (!held || !id || this.opening) return;
    this.focus = id;
    this.target = { id, how: { id, top: held.top, atEnd: false } };
  }

  /** Whether the newest message is rendered. */
  get showsEnd(): boolean {
    return this.end >= this.ids.length && (this.list?.foundNewest ?? false);
  }

  beforeChange(): void {
    if (!this.target) this.scroller?.beforeChange();
  }

  /** Handle scrolling by the user or by code. */
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

  /** Continue if no rendered row is in view. */
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

  /** Render, load, and mark as read what is in view. */
  follow(): void {
    const { scroller } = this;
    // Derived values end with the view.
    if (!scroller || this.target || this.#left) return;
    const { ids } = this;
    // Wait for the initial position.
    if (this.opening && this.#isEmpty) return;
    this.away = !scroller.atEnd;
    this.top = scroller.held?.id ?? 0;
    if (ids.length > MAX_LENGTH) {
      // Trim the far end, so that memory stays bounded.
      const visibleId = scroller.atEnd ? ids.at(-1) : this.top;
      trimList(this.app.store, this.name, visibleId ?? 0);
      this.heights.keep(this.ids);
      return;
    }
    const at = scroller.atEnd
      ? Math.max(0, ids.length - FIRST_ROWS.after)
      : sortedIndex(ids, this.top);
    const spare = scroller.spare();
    const needed = this.#isPainted ? scroller.frame.clientHeight / 2 : 0;
    const reach = this.#reach;
    const isShort = {
      before: this.start > 0 && spare.above < needed && reach.before < MAX_ROWS,
      after: this.end < ids.length && spare.below < needed && reach.after < MAX_ROWS,
    };
    if (isShort.before) reach.before += MORE_ROWS;
    if (isShort.after) reach.after += MORE_ROWS;
    const isFilled = ids.length && !isShort.before && !isShort.after;
    if (isFilled) this.#filling ??= afterPaint(() => this.#fill());
    const isAll = this.start === 0 && this.end >= ids.length;
    const isEnd = scroller.atEnd && this.end < ids.length;
    if (!isAll && (isEnd || Math.abs(at - this.#at) > DRIFT)) {
      this.focus = ids[Math.min(at, ids.length - 1)] ?? null;
    }
    if (!this.view.shown) return;
    this.#fetch(at);
    this.#seenTimer ??= setTimeout(() => {
      this.#seenTimer = undefined;
      this.#see();
    }, SEEN_AFTER);
  }

  /** Render rows beyond the view, once the view is painted. */
  #fill(): void {
    this.#isPainted = true;
    this.#reach.before = Math.max(ROWS.before, this.#reach.before);
    this.#reach.after = Math.max(ROWS.after, this.#reach.after);
    if (!this.view.shown) this.#filling = afterPaint(() => (this.held = true));
  }

  #fetch(at: number): void {
    const { list, scroller } = this;
    if (!list || list.stale || this.opening || this.error) return;
    const lowest = scroller?.firstBelow(scroller.frame.clientHeight - 1);
    const lastAt = lowest ? sortedIndex(list.ids, scroller?.idOf(lowest) ?? 0) : list.ids.length;
    this.#prefetch.keep(list, at, lastAt);
  }

  /** Load what is missing or outdated, once the server has responded. */
  catchUp(): void {
    const { online, updating } = this.app.connection;
    if (updating) return;
    if (this.#isTentative && (online || this.opening)) {
      this.#isTentative = false;
      // Messages that arrived since then are unread: go to the first one, unless the user scrolled.
      if (this.opening || this.scroller?.atEnd) return void this.begin(this.#near);
    }
    if (!online) return;
    if (this.error) void this.again();
    else if (this.list?.stale) void this.refresh();
  }

  /** Retry loading. */
  async again(): Promise<void> {
    clearTimeout(this.#retryTimer);
    if (!this.error || this.#left) return;
    this.error = "";
    if (!this.list) await this.begin(this.#near);
    else if (this.list.stale) await this.refresh();
    else this.follow();
  }

  /** Reload a stale list around the current position. */
  async refresh(): Promise<void> {
    const { scroller } = this;
    const anchor = scroller?.atEnd ? "newest" : (scroller?.held?.id ?? "newest");
    const last = this.ids.at(-1);
    try {
      await loadAround(this.app.store, this.narrow, anchor);
      if (last !== undefined && !this.#left) await this.#followEmptied(last);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The topic became empty: it may have moved while offline. */
  async #followEmptied(last: number): Promise<void> {
    const topic = isOfChannel(this.narrow) ? conversationIn(this.narrow) : null;
    if (topic?.kind !== "topic" || this.ids.some((id) => id <= last)) return;
    try {
      const { followMissedMove } = await import("../live/movedTopics");
      await followMissedMove(this.app.store, topic, last);
    } catch {
      // Offline: stay.
    }
  }

  #see(): void {
    const { store } = this.app;
    const reading = readMarkerOf(store);
    const isLooking = document.visibilityState === "visible" && document.hasFocus();
    if (!isLooking || !this.scroller || this.target || !this.#reads) return;
    reading.seen(this.scroller.seen());
  }

  /** Whether messages seen here are marked as read. */
  get #reads(): boolean {
    const { store } = this.app;
    const policy = store.data.settings.web_mark_read_on_scroll_policy;
    return readMarkerOf(store).paused !== this.name && marksReadOnScroll(this.narrow, policy);
  }

  /** Highlight a message for a moment. */
  #light(id: number | null): void {
    clearTimeout(this.#litTimer);
    this.lit = id;
    this.#litTimer = setTimeout(() => (this.lit = null), LIT_FOR);
  }

  /** Call when the list is removed. It may never have been shown. */
  stop(): void {
    this.#left = true;
    this.#navigations += 1;
    this.held = true;
    this.#filling?.();
    this.#filling = undefined;
    clearTimeout(this.#litTimer);
    clearTimeout(this.#seenTimer);
    this.#seenTimer = undefined;
    clearTimeout(this.#retryTimer);
  }

  leave(): void {
    this.stop();
    this.lit = null;
    const place = this.scroller?.place();
    if (place && !this.target) places.set(this.name, place);
    const { store } = this.app;
    // The same list may be shown twice.
    store.shownLists = store.shownLists.toSpliced(store.shownLists.indexOf(this.name), 1);
    const reading = readMarkerOf(store);
    untrack(() => {
      if (reading.paused === this.name) reading.paused = null;
    });
  }
}
