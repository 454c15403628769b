/** What lies above the view: cards, pickers, dialogs, pictures. One at a time; shown by Overlays. */

import type { Emoji } from "../data/emoji";
import type { GifProvider } from "../data/gifs";
import type { Narrow } from "../data/narrow";

/** A picture or film of a message, as the lightbox shows it. */
export interface Shown {
  kind: "image" | "video";
  /** As large as it is there. */
  source: string;
  /** What the browser can show of it at once. */
  preview: string;
  name: string;
  messageId: number;
}

export type Overlay =
  | { kind: "user"; userId: number; anchor: Element }
  | { kind: "group"; groupId: number; anchor: Element }
  | { kind: "emoji"; anchor: Element; onpick: (emoji: Emoji) => void; isText: boolean }
  | { kind: "pins"; narrow: Narrow; channelId: number; topic: string | null; anchor: Element }
  | { kind: "gifs"; anchor: Element; provider: GifProvider; onpick: (text: string) => void }
  | { kind: "history"; messageId: number }
  | { kind: "receipts"; messageId: number }
  | { kind: "lightbox"; all: readonly Shown[]; at: number };

class Overlays {
  current = $state.raw<Overlay | null>(null);
  #opener: HTMLElement | null = null;

  open(overlay: Overlay): void {
    this.#opener = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    this.current = overlay;
  }

  /** Close it, and let the keyboard be where it was. */
  close(): void {
    if (!this.current) return;
    this.current = null;
    const opener = this.#opener;
    if (opener?.isConnected) queueMicrotask(() => opener.focus({ preventScroll: true }));
  }

  /** The card of a person beside an element. */
  user(userId: number, anchor: Element): void {
    this.open({ kind: "user", userId, anchor });
  }

  group(groupId: number, anchor: Element): void {
    this.open({ kind: "group", groupId, anchor });
  }

  /** The picker. `isText`: what is picked is written, so it can have a skin tone. */
  emoji(anchor: Element, onpick: (emoji: Emoji) => void, isText = false): void {
    this.open({ kind: "emoji", anchor, onpick, isText });
  }
}

export const overlays = new Overlays();
