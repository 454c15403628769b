/** Tracks which windows of the client are open, since each owns its drafts and outgoing
 * messages. */

import { newId } from "./storage.svelte";

const NAME = "tertulia:window";
const LOCK = "tertulia-window-";

export interface Windows {
  /** This window's ID; it survives reloads. */
  windowId: string;
  /** Whether the window with that ID is open. */
  isOpen(name: string): Promise<boolean>;
}

let claimed: Promise<Windows> | null = null;

/** Find this window's ID and lock it. */
export function claimWindow(): Promise<Windows> {
  claimed ??= claim();
  return claimed;
}

async function claim(): Promise<Windows> {
  let windowId = newId();
  try {
    const before = sessionStorage.getItem(NAME);
    // A duplicated window has the original's ID.
    if (before && (!hasLocks() || (await hold(before)))) windowId = before;
    else if (hasLocks()) await hold(windowId);
    sessionStorage.setItem(NAME, windowId);
  } catch {
    // Without storage, nothing is stored anyway.
  }
  return {
    windowId,
    isOpen: async (name) => {
      if (!hasLocks()) return false;
      const { held } = await navigator.locks.query();
      return held?.some((lock) => lock.name === LOCK + name) ?? false;
    },
  };
}

/** Insecure contexts have no Web Locks. */
function hasLocks(): boolean {
  return "locks" in navigator;
}

/** Lock an ID while the window is open; false if another window has it. */
function hold(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    void navigator.locks.request(LOCK + name, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise(() => {});
    });
  });
}
