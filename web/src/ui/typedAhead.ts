/**
 * What one types right after the key that opens something, while that is on its way: it is meant for
 * it, and for nothing else. It is kept, and typed into the field that has the keyboard then.
 */

import { tick } from "svelte";
import { isConverting } from "./converting";

/** What is on its way and will have the keyboard. */
export interface Coming {
  /** It is there, and has the keyboard where it has a field. */
  here: () => void;
  /** It will not come. */
  gone: () => void;
}

/** So many keys are kept; more are heard by nobody. */
const MOST = 500;
/** Those that mean something in a field, beside characters. */
const KEYS = ["Backspace", "Enter", "Tab", "ArrowDown", "ArrowUp"];

/** What is on its way, the latest last, and how it is taken back. */
const coming: { cancel: () => void }[] = [];
let kept: string[] = [];
/** What had the keyboard when it was asked for. */
let origin: Element | null = null;

/** Keep what is typed from now on. `cancel` is what Escape does meanwhile. */
export function typedAhead(cancel: () => void): Coming {
  if (!coming.length) {
    kept = [];
    origin = document.activeElement;
    window.addEventListener("keydown", keep, { capture: true });
  }
  const one = { cancel };
  coming.push(one);
  let isOver = false;
  const end = async (isHere: boolean) => {
    if (isOver) return;
    isOver = true;
    // Until it is shown, and what it asks for in turn is known.
    if (isHere) await tick();
    // What is on its way within it gets what was typed.
    if (isHere && coming.at(-1) === one) await typeKept();
    coming.splice(coming.indexOf(one), 1);
    if (!coming.length) window.removeEventListener("keydown", keep, { capture: true });
  };
  return { here: () => void end(true), gone: () => void end(false) };
}

function keep(event: KeyboardEvent): void {
  const { key, target } = event;
  // Those that are typed below are not kept again.
  if (!event.isTrusted || isConverting(event) || event.ctrlKey || event.metaKey || event.altKey)
    return;
  // Whoever went into another field meanwhile writes there, and nothing else.
  if (target !== origin && takesText(target)) {
    kept = [];
    return;
  }
  if (key === "Escape") coming.at(-1)?.cancel();
  else if (key.length > 1 && !KEYS.includes(key)) return;
  // The key that asked for it may be held down still.
  else if (!event.repeat && kept.length < MOST) kept.push(key);
  event.preventDefault();
  event.stopPropagation();
}

async function typeKept(): Promise<void> {
  for (let key = kept.shift(); key !== undefined; key = kept.shift()) {
    const { activeElement: field } = document;
    // Nothing to type into: it was meant for nothing else.
    if (!takesText(field)) kept = [];
    else if (key.length === 1) document.execCommand("insertText", false, key);
    else if (field?.dispatchEvent(pressed(key))) {
      if (key === "Backspace") document.execCommand("delete");
      // Where the browser would go with it nobody else knows.
      else if (key === "Tab") kept = [];
    }
    await tick();
  }
}

function pressed(key: string): KeyboardEvent {
  return new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
}

/** Whether what has the focus takes keys for itself. */
export function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement) return true;
  if (target instanceof HTMLSelectElement) return true;
  return (
    target instanceof HTMLInputElement &&
    !["checkbox", "radio", "button", "submit", "range", "color", "file"].includes(target.type)
  );
}
