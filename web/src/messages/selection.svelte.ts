/** The selected message of a list. */

import { tick } from "svelte";
import type { Message } from "../data/data";
import { sortedIndex } from "../data/lists";
import type { Store } from "../live/store.svelte";
import type { MessageWindow } from "./messageWindow.svelte";

export class MessageSelection {
  id = $state<number | null>(null);

  constructor(
    private readonly messageWindow: MessageWindow,
    private readonly store: Store,
  ) {}

  get message(): Message | undefined {
    return this.id === null ? undefined : this.store.messages.get(this.id);
  }

  async choose(id: number): Promise<void> {
    const { messageWindow } = this;
    this.id = id;
    const at = sortedIndex(messageWindow.ids, id);
    if (at < messageWindow.start + 5 || at >= messageWindow.end - 5) {
      messageWindow.focus = id;
      await tick();
    }
    const row = messageWindow.scroller?.row(id);
    if (!row) return;
    messageWindow.scroller?.reveal(row);
    messageWindow.scrolled();
    row.querySelector<HTMLElement>("article")?.focus({ preventScroll: true });
  }

  /** Select the next or previous message. */
  move(by: 1 | -1): void {
    const { ids, scroller } = this.messageWindow;
    const visible = scroller?.seen() ?? [];
    const isVisible = this.id !== null && visible.includes(this.id);
    // Without a selection, begin with a visible message.
    const begin = (scroller?.atEnd ? visible.at(-1) : visible[0]) ?? scroller?.held?.id ?? 0;
    const from = sortedIndex(ids, isVisible ? (this.id ?? 0) : begin) + (isVisible ? by : 0);
    const id = ids[Math.min(Math.max(0, from), ids.length - 1)];
    if (from >= ids.length) void this.messageWindow.toEnd();
    else if (id !== undefined) void this.choose(id);
  }

  jump(to: "end" | "beginning"): void {
    this.id = null;
    void (to === "end" ? this.messageWindow.passToEnd() : this.messageWindow.toBeginning());
  }

  page(by: 1 | -1): void {
    const frame = this.messageWindow.scroller?.frame;
    frame?.scrollBy({ top: by * frame.clientHeight * 0.85 });
  }
}
