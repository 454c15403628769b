/** Registers global shortcuts. Keys in text fields and in the compose box are ignored, except for
 * those with Control and Escape. Names follow `KeyboardEvent.key`, such as `j`, `V` (Shift),
 * `ArrowDown`, or `?`, with `Control+` for Control or Command. */

import { isConverting } from "../ui/dom";
import { takesText } from "../ui/typeAhead";

type Handler = (event: KeyboardEvent) => void | boolean;
type Handlers = Readonly<Record<string, Handler>>;

interface Scope {
  /** Whether the shortcuts are active. */
  when?: () => boolean;
  /** Whether they are active everywhere: a view's own shortcuts come first. */
  general?: boolean;
}

interface Registered {
  handlers: Handlers;
  scope: Scope;
}

/** The last one of a view is asked first. */
const registered: Registered[] = [];
let listening = false;

/** Register handlers; a handler that returns `false` passes the key on. Returns a function that
 * removes them. */
export function register(handlers: Handlers, scope: Scope = {}): () => void {
  const registration = { handlers, scope };
  if (scope.general) registered.push(registration);
  else registered.unshift(registration);
  if (!listening) {
    listening = true;
    window.addEventListener("keydown", hear);
  }
  return () => void registered.splice(registered.indexOf(registration), 1);
}

export const registerShortcuts = register;

function nameOfKey(event: KeyboardEvent): string {
  return event.ctrlKey || event.metaKey ? `Control+${event.key}` : event.key;
}

/** Whether the focus is in a text field or the compose box. */
function isWriting(target: EventTarget | null): boolean {
  return (
    takesText(target) || (target instanceof Element && target.closest("[data-writing]") !== null)
  );
}

/** Dialogs and menus handle their own keys. */
function isBusy(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]")) return true;
  return target instanceof Element && target.closest('[role="menu"], [role="listbox"]') !== null;
}

function hear(event: KeyboardEvent): void {
  if (event.defaultPrevented || isConverting(event) || event.altKey) return;
  const name = nameOfKey(event);
  const isForAll = name.startsWith("Control+") || name === "Escape";
  // The browser closes the popover on Escape unless the key is handled.
  if (name === "Escape" && document.querySelector("[popover]:popover-open")) return;
  if ((isWriting(event.target) && !isForAll) || isBusy(event.target)) return;
  // Enter and Space activate a focused control.
  if ((name === "Enter" || name === " ") && isControl(event.target)) return;
  for (const { handlers, scope } of [...registered]) {
    const handler = handlers[name];
    if (!handler || scope.when?.() === false) continue;
    if (handler(event) === false) continue;
    event.preventDefault();
    return;
  }
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a, button, summary, [role=button]") !== null;
}
