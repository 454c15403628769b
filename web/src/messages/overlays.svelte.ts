/** Overlays: cards, pickers, dialogs, lightbox. One at a time, rendered by Overlays. */

import type { Emoji } from "../data/emoji";
import type { GifProvider } from "../data/providers";
import type { Narrow } from "../data/conversations";

/** What the lightbox shows. */
export interface LightboxMedia {
  kind: "image" | "video" | "document" | "text";
  /** Full size. */
  source: string;
  /** An image that is already loaded. */
  preview: string;
  name: string;
  messageId: number;
}

type Overlay =
  | { kind: "user"; userId: number; anchor: Element }
  | { kind: "group"; groupId: number; anchor: Element }
  | { kind: "emoji"; anchor: Element; onpick: (emoji: Emoji) => void; isText: boolean }
  | { kind: "pins"; narrow: Narrow; channelId: number; topic: string | null; anchor: Element }
  | { kind: "gifs"; anchor: Element; provider: GifProvider; onpick: (text: string) => void }
  | { kind: "history"; messageId: number }
  | { kind: "receipts"; messageId: number }
  | { kind: "lightbox"; all: readonly LightboxMedia[]; at: number };

class Overlays {
  current = $state.raw<Overlay | null>(null);
  #opener: HTMLElement | null = null;

  open(overlay: Overlay): void {
    this.#opener = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    this.current = overlay;
  }

  /** Close it and return the focus. */
  close(): void {
    if (!this.current) return;
    this.current = null;
    const opener = this.#opener;
    if (opener?.isConnected) queueMicrotask(() => opener.focus({ preventScroll: true }));
  }

  /** Show a user's card next to an element. */
  user(userId: number, anchor: Element): void {
    this.open({ kind: "user", userId, anchor });
  }

  group(groupId: number, anchor: Element): void {
    this.open({ kind: "group", groupId, anchor });
  }

  /** Open the emoji picker; `isText` offers skin tones. */
  emoji(anchor: Element, onpick: (emoji: Emoji) => void, isText = false): void {
    this.open({ kind: "emoji", anchor, onpick, isText });
  }
}

export const overlays = new Overlays();
