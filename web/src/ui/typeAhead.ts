/** Buffers typing while a component that was opened by a shortcut loads, and then types it into the
 * focused field. */

import { tick } from "svelte";
import { isConverting } from "./dom";

/** A component that loads and will take the focus. */
interface TypingBuffer {
  /** It's mounted and focused. */
  ready: () => void;
  /** It failed or was canceled. */
  canceled: () => void;
}

/** Maximum number of buffered keys. */
const MAX_KEYS = 500;
/** Buffered keys other than characters. */
const BUFFERED_KEYS = ["Backspace", "Enter", "Tab", "ArrowDown", "ArrowUp"];

/** Loading components, newest last. */
const coming: { cancel: () => void }[] = [];
let pending: string[] = [];
/** The element that had the focus at the start. */
let origin: Element | null = null;

/** Start buffering. Escape calls `cancel`. */
export function bufferTyping(cancel: () => void): TypingBuffer {
  if (!coming.length) {
    pending = [];
    origin = document.activeElement;
    window.addEventListener("keydown", keep, { capture: true });
  }
  const buffer = { cancel };
  coming.push(buffer);
  let isOver = false;
  const end = async (isReady: boolean) => {
    if (isOver) return;
    isOver = true;
    // Wait until nested loads are known.
    if (isReady) await tick();
    // A nested load takes over the buffer.
    if (isReady && coming.at(-1) === buffer) await typeKept();
    coming.splice(coming.indexOf(buffer), 1);
    if (!coming.length) window.removeEventListener("keydown", keep, { capture: true });
  };
  return { ready: () => void end(true), canceled: () => void end(false) };
}

function keep(event: KeyboardEvent): void {
  const { key, target } = event;
  // Ignore the synthetic events sent below.
  if (!event.isTrusted || isConverting(event) || event.ctrlKey || event.metaKey || event.altKey)
    return;
  // The user moved to another field: don't interfere.
  if (target !== origin && takesText(target)) {
    pending = [];
    return;
  }
  if (key === "Escape") coming.at(-1)?.cancel();
  else if (key.length > 1 && !BUFFERED_KEYS.includes(key)) return;
  // The shortcut's key may still be held down.
  else if (!event.repeat && pending.length < MAX_KEYS) pending.push(key);
  event.preventDefault();
  event.stopPropagation();
}

async function typeKept(): Promise<void> {
  for (let key = pending.shift(); key !== undefined; key = pending.shift()) {
    const { activeElement: field } = document;
    // No field: discard the buffer.
    if (!takesText(field)) pending = [];
    else if (key.length === 1) document.execCommand("insertText", false, key);
    else if (field?.dispatchEvent(pressed(key))) {
      if (key === "Backspace") document.execCommand("delete");
      // Tab can't be simulated.
      else if (key === "Tab") pending = [];
    }
    await tick();
  }
}

function pressed(key: string): KeyboardEvent {
  return new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
}

/** Whether an element handles keys itself. */
export function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement) return true;
  if (target instanceof HTMLSelectElement) return true;
  return (
    target instanceof HTMLInputElement &&
    !["checkbox", "radio", "button", "submit", "range", "color", "file"].includes(target.type)
  );
}
