/**
 * The menu of what is under the pointer, at a click with the right button: the same that its own
 * button opens; of a person, the card. With Shift, and on what the browser knows more about, it is
 * the browser's.
 */

import { overlays } from "../messages/overlays.svelte";

/** What has a menu: its button is the first in it that opens one. */
const MENUED = "[data-menued], [data-person]";
const BUTTON = '[aria-haspopup="menu"]';
/** What is a place of its own: the browser copies, opens, saves it. */
const OF_THE_BROWSER =
  "input, textarea, select, audio, video, [contenteditable], dialog, [popover]," +
  "a:not([data-side], [data-row], [data-person])";

/** Listen until the answer is called. */
export function listenForMenus(): () => void {
  const listening = new AbortController();
  const { signal } = listening;
  window.addEventListener("contextmenu", (event) => opened(event, signal), { signal });
  return () => listening.abort();
}

function opened(event: MouseEvent, signal: AbortSignal): void {
  const { target } = event;
  if (event.defaultPrevented || event.shiftKey || !(target instanceof Element)) return;
  // A finger's long press has its own ways.
  if ((event as PointerEvent).pointerType === "touch") return;
  const row = target.closest(MENUED);
  if (!row || target.closest(OF_THE_BROWSER) || isSelected(target)) return;
  const show = shower(row, event);
  if (!show) return;
  event.preventDefault();
  // After the menu that was open has noticed that it is closed.
  const open = () => setTimeout(show);
  if (!event.buttons) return void open();
  // A popover that opens while the button is down would be closed by its release.
  const released = new AbortController();
  const once = { once: true, signal: AbortSignal.any([signal, released.signal]) };
  window.addEventListener("pointerup", open, once);
  window.addEventListener("pointerdown", () => released.abort(), once);
}

/** How what belongs to a row is shown; null where it has nothing. */
function shower(row: Element, { clientX, clientY }: MouseEvent): (() => void) | null {
  const person = row.getAttribute("data-person");
  if (person) return () => row.isConnected && overlays.user(Number(person), row);
  const button = row.querySelector(BUTTON);
  if (!button) return null;
  const at = { clientX, clientY, bubbles: true, cancelable: true };
  return () => button.isConnected && button.dispatchEvent(new MouseEvent("click", at));
}

/** Whether the pointer is on text that is selected: that can be copied. */
function isSelected(target: Element): boolean {
  const selection = window.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(target, true);
}
