/** The scrolling element of a list: where its rows are, and how it keeps its place. */

import type { Place } from "../data/opening";

/** So near to the end counts as being there, in pixels. */
const NEAR_END = 32;

export class Scroller {
  /** The message that keeps its place while things change around it. */
  held: { id: number; top: number } | null = null;
  /** Whether one is at the end and follows it. */
  atEnd = false;

  #seen = -1;

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

  get distanceToEnd(): number {
    const { scrollHeight, scrollTop, clientHeight } = this.frame;
    return scrollHeight - scrollTop - clientHeight;
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

  /** Remember the place that one has scrolled to. */
  capture(canEnd: boolean): void {
    this.#seen = this.frame.scrollTop;
    this.atEnd = canEnd && this.distanceToEnd <= NEAR_END;
    const row = this.firstBelow(0);
    if (row) this.held = { id: this.idOf(row), top: this.topOf(row) };
  }

  /** Whether it was scrolled since the place was remembered. */
  get moved(): boolean {
    return Math.abs(this.frame.scrollTop - this.#seen) > 1;
  }

  /** Be where one was, after anything has changed. Answers whether that place is still there. */
  restore(): boolean {
    const row = this.held && this.row(this.held.id);
    if (this.atEnd) this.#to(this.frame.scrollHeight);
    else if (row && this.held) this.#by(this.topOf(row) - this.held.top);
    this.#seen = this.frame.scrollTop;
    return this.atEnd || !this.held || row !== null;
  }

  /** Put a message at a height of the window. */
  put(id: number, top: number): void {
    this.atEnd = false;
    this.held = { id, top };
    this.restore();
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

  #by(distance: number): void {
    if (Math.abs(distance) >= 1) this.#to(this.frame.scrollTop + distance);
  }

  #to(top: number): void {
    this.frame.scrollTop = top;
  }
}
