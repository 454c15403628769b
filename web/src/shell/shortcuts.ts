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
}

interface Registered {
  handlers: Handlers;
  scope: Scope;
}

/** The last one is asked first. */
const registered: Registered[] = [];
let listening = false;

/** Register handlers; a handler that returns `false` passes the key on. Returns a function that
 * removes them. */
export function register(handlers: Handlers, scope: Scope = {}): () => void {
  const one = { handlers, scope };
  registered.unshift(one);
  if (!listening) {
    listening = true;
    window.addEventListener("keydown", hear);
  }
  return () => void registered.splice(registered.indexOf(one), 1);
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
  if (isBusy(event.target) || (isWriting(event.target) && !isForAll)) return;
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

/** Names in `words.shell.keys`, by group, for the card of shortcuts. */
export const SHORTCUT_LIST = [
  {
    group: "navigation",
    keys: [
      ["/", "search"],
      ["Control+k", "jump"],
      ["i", "inbox"],
      ["t", "recent"],
      ["v", "feed"],
      ["*", "starred"],
      ["d", "drafts"],
      ["n", "nextTopic"],
      ["p", "nextDirect"],
      ["a", "previousChannel"],
      ["D", "nextChannel"],
      ["q", "filterChannels"],
      ["w", "filterPeople"],
      ["Escape", "home"],
    ],
  },
  {
    group: "reading",
    keys: [
      ["j", "next"],
      ["k", "previous"],
      ["J", "pageDown", " "],
      ["K", "pageUp"],
      ["End", "newest"],
      ["Home", "oldest"],
      ["s", "toTopic"],
      ["S", "toChannel"],
      ["P", "allDirects"],
      ["T", "topicList"],
      ["u", "card"],
      ["m", "markRowRead"],
      ["M", "mute"],
      ["F", "follow"],
    ],
  },
  {
    group: "writing",
    keys: [
      ["c", "write"],
      ["x", "writeDirect"],
      ["r", "reply"],
      [">", "quote"],
      ["Enter", "compose"],
      ["Control+Enter", "send"],
      ["Alt+m", "formatted"],
      ["ArrowLeft", "editLast"],
    ],
  },
  {
    group: "messages",
    keys: [
      ["e", "edit"],
      ["m", "move"],
      ["Control+s", "star"],
      [":", "react"],
      ["+", "thumbsUp"],
      ["U", "markUnread"],
      ["L", "copyLink"],
      ["H", "history"],
      ["V", "receipts"],
    ],
  },
  {
    group: "general",
    keys: [
      ["?", "help"],
      ["[", "left"],
      ["]", "right"],
      ["g", "account"],
    ],
  },
] as const;

/** Key labels as printed on keyboards. */
export function keyLabels(key: string): string[] {
  const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
  const caps: Record<string, string> = {
    " ": "Space",
    ArrowLeft: "←",
    ArrowUp: "↑",
    ArrowDown: "↓",
    Escape: "Esc",
    Control: isApple ? "⌘" : "Ctrl",
    ...(isApple && { Alt: "⌥" }),
  };
  const parts = key.length > 1 ? key.split("+") : [key];
  return parts.flatMap((part, at) => {
    const cap = caps[part] ?? part;
    if (/^\p{Lu}$/u.test(cap)) return ["Shift", cap];
    return at && /^\p{Ll}$/u.test(cap) ? [cap.toUpperCase()] : [cap];
  });
}
