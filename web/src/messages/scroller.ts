/** The scroll container of a list: positions of rows, and scroll anchoring. */

import type { ScrollPosition } from "../data/readPosition";

/** Distance that counts as the end, in pixels. */
const NEAR_END = 32;

export class Scroller {
  /** The anchor, which keeps its position while things change around it. */
  held: { id: number; top: number } | null = null;
  /** Whether the view is at the end and follows it. */
  atEnd = false;
  /** Whether the last row is the newest message. */
  showsEnd = false;

  /** Scroll position when the anchor was last set, and its maximum then. */
  #scrollTop = 0;
  #end = 0;
  #isChanging = false;

  constructor(
    readonly frame: HTMLElement,
    readonly rows: HTMLElement,
  ) {}

  row(id: number): HTMLElement | null {
    return this.rows.querySelector<HTMLElement>(`:scope > [data-id="${id}"]`);
  }

  idOf(row: Element): number {
    return Number((row as HTMLElement).dataset["id"]);
  }

  /** Offset of a row's top in the view. */
  topOf(row: HTMLElement): number {
    return row.offsetTop - this.frame.scrollTop;
  }

  /** Height of rendered rows outside the view, above and below, in pixels. */
  spare(): { above: number; below: number } {
    const { scrollTop, clientHeight } = this.frame;
    const { offsetTop, offsetHeight } = this.rows;
    return {
      above: scrollTop - offsetTop,
      below: offsetTop + offsetHeight - scrollTop - clientHeight,
    };
  }

  /** The first row visible below a position. */
  firstBelow(line: number): HTMLElement | null {
    const all = this.rows.children;
    const target = this.frame.scrollTop + line;
    let low = 0;
    let high = all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const row = all[middle] as HTMLElement;
      if (row.offsetTop + row.offsetHeight <= target) low = middle + 1;
      else high = middle;
    }
    return (all[low] as HTMLElement | undefined) ?? null;
  }

  /** The message at the top; null if no row is visible. */
  get first(): number | null {
    const row = this.firstBelow(0);
    return row && this.topOf(row) < this.frame.clientHeight ? this.idOf(row) : null;
  }

  /** Rows whose bottom is visible. */
  seen(): number[] {
    const heights: number[] = [];
    const { scrollTop, clientHeight } = this.frame;
    for (let row = this.firstBelow(0); row; row = row.nextElementSibling as HTMLElement | null) {
      const bottom = row.offsetTop + row.offsetHeight;
      if (bottom > scrollTop + clientHeight + 4) break;
      heights.push(this.idOf(row));
    }
    return heights;
  }

  /** Rows are about to change; `keep` or `put` follows before the user can scroll. */
  beforeChange(): void {
    this.keep();
    this.#isChanging = true;
  }

  /** Restore the anchor's position after layout changes, whatever was scrolled since: positions are
   * read from the page instead of events. Call after every scroll and change. Returns whether the
   * anchor still exists. */
  keep(): boolean {
    // Hidden elements have no layout.
    if (!this.frame.clientHeight) return true;
    const distance = this.#isChanging ? 0 : this.#scrolled();
    if (distance) {
      if (this.held) this.held.top -= distance;
      this.atEnd &&= this.#end - this.frame.scrollTop <= NEAR_END;
    }
    const isThere = this.#restore();
    if (isThere && (distance || this.atEnd || !this.held)) this.#hold();
    this.#note();
    return isThere;
  }

  /** Scroll a message to an offset. */
  put(id: number, top: number): void {
    this.held = { id, top };
    this.atEnd = false;
    this.#restore();
    this.#note();
    this.atEnd = this.#isNearEnd;
  }

  /** Scroll to the end and follow it. */
  toEnd(): void {
    this.atEnd = true;
    this.#by(this.#distanceToEnd);
    this.#hold();
    this.#note();
  }

  /** Scroll minimally to show a row, or its beginning. */
  reveal(row: HTMLElement, margin = 12): void {
    const top = this.topOf(row);
    const bottom = top + row.offsetHeight;
    const { clientHeight } = this.frame;
    if (top < margin || row.offsetHeight > clientHeight - 2 * margin) this.#by(top - margin);
    else if (bottom > clientHeight - margin) this.#by(bottom - clientHeight + margin);
  }

  place(): ScrollPosition | null {
    return this.held && { ...this.held, atEnd: this.atEnd };
  }

  get #distanceToEnd(): number {
    return this.#farthest - this.frame.scrollTop;
  }

  get #farthest(): number {
    return this.frame.scrollHeight - this.frame.clientHeight;
  }

  get #isNearEnd(): boolean {
    return this.showsEnd && this.#distanceToEnd <= NEAR_END;
  }

  /** Distance scrolled by the user since the anchor was set. */
  #scrolled(): number {
    const distance = this.frame.scrollTop - this.#scrollTop;
    // The browser clamps the position when content shrinks.
    const wasCut = this.#farthest < this.#end && this.#distanceToEnd < 1;
    return Math.abs(distance) < 1 || wasCut ? 0 : distance;
  }

  #restore(): boolean {
    if (this.atEnd) {
      if (this.#farthest !== this.#end) this.#by(this.#distanceToEnd);
      return true;
    }
    const row = this.held && this.row(this.held.id);
    if (row && this.held) this.#by(this.topOf(row) - this.held.top);
    return row !== null || !this.held;
  }

  /** Choose the anchor. Not the first visible row, since its divider disappears when older messages
   * load and its images may be out of view. */
  #hold(): void {
    const first = this.firstBelow(0);
    const next = first?.nextElementSibling as HTMLElement | null | undefined;
    const row = next && this.topOf(next) < this.frame.clientHeight ? next : first;
    if (row) this.held = { id: this.idOf(row), top: this.topOf(row) };
    this.atEnd ||= this.#isNearEnd;
  }

  #note(): void {
    this.#scrollTop = this.frame.scrollTop;
    this.#end = this.#farthest;
    this.#isChanging = false;
  }

  #by(distance: number): void {
    if (Math.abs(distance) >= 1) this.frame.scrollBy({ top: distance, behavior: "instant" });
  }
}
