import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Scroller } from "./scroller";

const WINDOW = 600;

/** A simulated list with rows of given heights. */
class Page {
  rows: { id: number; height: number }[];
  #scrollTop = 0;
  readonly scroller: Scroller;

  constructor(count: number) {
    this.rows = Array.from({ length: count }, (_, at) => ({ id: 1000 + at, height: 40 }));
    const page = this;
    const frame = {
      clientHeight: WINDOW,
      get scrollHeight() {
        return Math.max(WINDOW, page.offset(page.rows.length));
      },
      get scrollTop() {
        // Can't scroll beyond the end.
        page.#scrollTop = Math.min(page.#scrollTop, this.scrollHeight - WINDOW);
        return page.#scrollTop;
      },
      scrollBy({ top }: { top: number }) {
        page.#scrollTop = Math.max(0, this.scrollTop + top);
        void this.scrollTop;
      },
    };
    const list = {
      get children() {
        return page.rows.map((_, at) => page.#element(at));
      },
      querySelector(selector: string) {
        const id = Number(/\d+/.exec(selector)?.[0]);
        const at = page.rows.findIndex((row) => row.id === id);
        return at < 0 ? null : page.#element(at);
      },
    };
    this.scroller = new Scroller(frame as unknown as HTMLElement, list as unknown as HTMLElement);
  }

  #element(at: number): HTMLElement | null {
    const row = this.rows[at];
    if (!row) return null;
    return {
      offsetTop: this.offset(at),
      offsetHeight: row.height,
      dataset: { id: String(row.id) },
      nextElementSibling: this.#element(at + 1),
    } as unknown as HTMLElement;
  }

  offset(at: number): number {
    return this.rows.slice(0, at).reduce((sum, row) => sum + row.height, 0);
  }

  /** Offset of a message in the window. */
  top(id: number): number {
    const at = this.rows.findIndex((row) => row.id === id);
    return this.offset(at) - this.scroller.frame.scrollTop;
  }

  get middle(): number {
    return this.rows.find((row) => this.top(row.id) > WINDOW / 2)?.id ?? 0;
  }

  scroll(by: number): void {
    this.scroller.frame.scrollBy({ top: by });
  }

  prepend(count: number): void {
    const first = this.rows[0]?.id ?? 0;
    const more = Array.from({ length: count }, (_, at) => ({ id: first - count + at, height: 55 }));
    this.rows.unshift(...more);
  }

  append(count: number): void {
    const last = this.rows.at(-1)?.id ?? 0;
    for (let at = 1; at <= count; at += 1) this.rows.push({ id: last + at, height: 35 });
  }
}

function startPage(id: number, count = 100): Page {
  const page = new Page(count);
  page.scroller.put(id, 0);
  return page;
}

describe("Scroller", () => {
  it("keeps the position however far was scrolled before the event", () => {
    const change = fc.oneof(
      fc.record({ what: fc.constant("prepend" as const), by: fc.integer({ min: 1, max: 30 }) }),
      fc.record({ what: fc.constant("append" as const), by: fc.integer({ min: 1, max: 30 }) }),
      fc.record({ what: fc.constant("grow" as const), by: fc.integer({ min: 0, max: 9 }) }),
      fc.record({ what: fc.constant("scroll" as const), by: fc.integer({ min: -300, max: 300 }) }),
      fc.constant({ what: "tell" as const, by: 0 }),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const page = startPage(1050);
        // The message being read, and its position.
        const seen = page.middle;
        let wanted = page.top(seen);
        for (const { what: direction, by } of changes) {
          if (direction === "prepend") page.prepend(by);
          else if (direction === "append") page.append(by);
          else if (direction === "grow") page.rows[by]!.height += 25;
          else if (direction === "tell") page.scroller.keep();
          else {
            // Avoid the ends, and keep the message in view.
            const next = wanted - by;
            if (next < WINDOW / 4 || next > WINDOW / 2) continue;
            page.scroll(by);
            wanted = next;
          }
        }
        page.scroller.keep();
        expect(page.top(seen)).toBe(wanted);
      }),
    );
  });

  it("holds a requested position until the user scrolls", () => {
    const page = startPage(1050);
    page.scroller.put(1050, 200);
    page.rows[48]!.height += 90;
    page.scroller.keep();
    expect(page.top(1050)).toBe(200);
  });

  it("puts a message in place once there is enough content below", () => {
    const page = startPage(1095);
    expect(page.top(1095)).toBeGreaterThan(0);
    page.append(50);
    page.scroller.keep();
    expect(page.top(1095)).toBe(0);
  });

  it("doesn't anchor on the first loaded row, whose divider may disappear", () => {
    const page = startPage(1000);
    page.scroll(5);
    page.scroller.keep();
    const before = page.top(1003);
    page.scroller.beforeChange();
    page.rows[0]!.height -= 30;
    page.prepend(50);
    page.scroller.keep();
    expect(page.top(1003)).toBe(before);
  });

  it("doesn't take clamping for scrolling", () => {
    const page = startPage(1080);
    const before = page.top(1085);
    page.scroller.beforeChange();
    page.rows.splice(0, 60);
    void page.scroller.frame.scrollTop;
    page.append(40);
    page.scroller.keep();
    expect(page.top(1085)).toBe(before);
  });

  it("follows the end until the user scrolls away", () => {
    const page = startPage(1000);
    page.scroller.showsEnd = true;
    page.scroller.toEnd();
    page.append(3);
    page.scroller.keep();
    expect(page.scroller.atEnd).toBe(true);
    expect(page.top(1102)).toBe(WINDOW - 35);
    page.append(3);
    page.scroll(-200);
    page.append(3);
    page.scroller.keep();
    expect(page.scroller.atEnd).toBe(false);
    expect(page.top(1102)).toBe(WINDOW - 35 + 200);
    page.scroll(10_000);
    page.scroller.keep();
    expect(page.scroller.atEnd).toBe(true);
  });

  it("doesn't take the end of loaded messages for the end of the list", () => {
    const page = startPage(1050);
    page.scroll(10_000);
    page.scroller.keep();
    const before = page.top(1099);
    page.scroller.beforeChange();
    page.append(10);
    page.scroller.showsEnd = true;
    page.scroller.keep();
    expect(page.scroller.atEnd).toBe(false);
    expect(page.top(1099)).toBe(before);
  });

  it("reports that its anchor is gone, and where it was", () => {
    const page = startPage(1050);
    page.scroll(13);
    page.scroller.keep();
    const { held } = page.scroller;
    page.rows = page.rows.filter((row) => row.id !== held?.id);
    expect(page.scroller.keep()).toBe(false);
    expect(page.scroller.place()).toEqual({ ...held, atEnd: false });
  });
});
