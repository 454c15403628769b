/** The scrolling element of a list: where its rows are, and how what one looks at keeps its place. */

import type { Place } from "../data/opening";

/** So near to the end counts as being there, in pixels. */
const NEAR_END = 32;

export class Scroller {
  /** The message that keeps its place while things change around it. */
  held: { id: number; top: number } | null = null;
  /** Whether one is at the end and follows it. */
  atEnd = false;
  /** Whether the last row is the last message that there is. */
  showsEnd = false;

  /** Where the element was scrolled to when the place was kept last, and how far it went then. */
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

  /** How far a row's top is below that of the window. */
  topOf(row: HTMLElement): number {
    return row.offsetTop - this.frame.scrollTop;
  }

  /** How much of the rows in the page is out of sight above and below, in pixels. */
  spare(): { above: number; below: number } {
    const { scrollTop, clientHeight } = this.frame;
    const { offsetTop, offsetHeight } = this.rows;
    return {
      above: scrollTop - offsetTop,
      below: offsetTop + offsetHeight - scrollTop - clientHeight,
    };
  }

  /** The first row of which something can be seen below a line in the window. */
  firstBelow(line: number): HTMLElement | null {
    const all = this.rows.children;
    const wanted = this.frame.scrollTop + line;
    let low = 0;
    let high = all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const row = all[middle] as HTMLElement;
      if (row.offsetTop + row.offsetHeight <= wanted) low = middle + 1;
      else high = middle;
    }
    return (all[low] as HTMLElement | undefined) ?? null;
  }

  /** The message at the window's top; null where no row reaches into the window. */
  get first(): number | null {
    const row = this.firstBelow(0);
    return row && this.topOf(row) < this.frame.clientHeight ? this.idOf(row) : null;
  }

  /** Rows of which the lower edge can be seen. */
  seen(): number[] {
    const found: number[] = [];
    const { scrollTop, clientHeight } = this.frame;
    for (let row = this.firstBelow(0); row; row = row.nextElementSibling as HTMLElement | null) {
      const bottom = row.offsetTop + row.offsetHeight;
      if (bottom > scrollTop + clientHeight + 4) break;
      found.push(this.idOf(row));
    }
    return found;
  }

  /** The rows are about to change, and `keep` or `put` follows before anybody can scroll. */
  beforeChange(): void {
    this.keep();
    this.#isChanging = true;
  }

  /**
   * Undo what a change of the page did to the place where one is, however far one has scrolled
   * since: it is read from the page, no event has to have told of it. To be called whenever one
   * has scrolled or anything has changed. Answers whether what keeps its place is still there.
   */
  keep(): boolean {
    // What is not shown has no places.
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

  /** Put a message at a height of the window. */
  put(id: number, top: number): void {
    this.held = { id, top };
    this.atEnd = false;
    this.#restore();
    this.#note();
    this.atEnd = this.#isNearEnd;
  }

  /** Go to the end, and follow it. */
  toEnd(): void {
    this.atEnd = true;
    this.#by(this.#distanceToEnd);
    this.#hold();
    this.#note();
  }

  /** Just so much that a row can be seen whole, or its beginning. */
  reveal(row: HTMLElement, margin = 12): void {
    const top = this.topOf(row);
    const bottom = top + row.offsetHeight;
    const { clientHeight } = this.frame;
    if (top < margin || row.offsetHeight > clientHeight - 2 * margin) this.#by(top - margin);
    else if (bottom > clientHeight - margin) this.#by(bottom - clientHeight + margin);
  }

  place(): Place | null {
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

  /** How far somebody has scrolled since the place was kept last. */
  #scrolled(): number {
    const distance = this.frame.scrollTop - this.#scrollTop;
    // What has become shorter is scrolled back by the browser.
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

  /**
   * Hold what one looks at. That is not the first row of which something is seen: what stands
   * above its text goes when older messages come, and its pictures may be out of sight.
   */
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
