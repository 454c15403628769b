/** Context menus: right-click opens the menu of an element's own button, or a person's card. Shift,
 * and elements such as links and fields, get the browser's menu. */

import { overlays } from "../messages/overlays.svelte";

/** Elements with a menu: the first button in them that opens one. */
const MENUED = "[data-menued], [data-person]";
const BUTTON = '[aria-haspopup="menu"]';
/** Elements with a useful browser menu. */
const OF_THE_BROWSER =
  "input, textarea, select, audio, video, [contenteditable], dialog, [popover]," +
  "a:not([data-side], [data-row], [data-person])";

/** Returns a function that stops listening. */
export function listenForMenus(): () => void {
  const listening = new AbortController();
  const { signal } = listening;
  window.addEventListener("contextmenu", (event) => opened(event, signal), { signal });
  return () => listening.abort();
}

function opened(event: MouseEvent, signal: AbortSignal): void {
  const { target } = event;
  if (event.defaultPrevented || event.shiftKey || !(target instanceof Element)) return;
  // Touch has its own long press.
  if ((event as PointerEvent).pointerType === "touch") return;
  const row = target.closest(MENUED);
  if (!row || target.closest(OF_THE_BROWSER) || isSelected(target)) return;
  const show = menuOpener(row, event);
  if (!show) return;
  event.preventDefault();
  // After the open menu has noticed its closing.
  const open = () => setTimeout(show);
  if (!event.buttons) return void open();
  // A popover opened while the button is down would close on release.
  const released = new AbortController();
  const once = { once: true, signal: AbortSignal.any([signal, released.signal]) };
  window.addEventListener("pointerup", open, once);
  window.addEventListener("pointerdown", () => released.abort(), once);
}

/** A function that opens a row's menu; null if it has none. */
function menuOpener(row: Element, { clientX, clientY }: MouseEvent): (() => void) | null {
  const person = row.getAttribute("data-person");
  if (person) return () => row.isConnected && overlays.user(Number(person), row);
  const button = row.querySelector(BUTTON);
  if (!button) return null;
  const at = { clientX, clientY, bubbles: true, cancelable: true };
  return () => button.isConnected && button.dispatchEvent(new MouseEvent("click", at));
}

/** Whether the pointer is on selected text, which can be copied. */
function isSelected(target: Element): boolean {
  const selection = window.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(target, true);
}
