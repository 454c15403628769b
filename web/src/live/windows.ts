/** Which windows of the client are open: what one of them kept is its own while it is. */

import { newId } from "./browserStorage";

const NAME = "tertulia:window";
const LOCK = "tertulia-window-";

export interface Windows {
  /** This window's name; the same after a reload. */
  own: string;
  /** Whether another window of that name is open. */
  isOpen(name: string): Promise<boolean>;
}

let claimed: Promise<Windows> | null = null;

/** Find this window's name, and hold it. */
export function claimWindow(): Promise<Windows> {
  claimed ??= claim();
  return claimed;
}

async function claim(): Promise<Windows> {
  let own = newId();
  try {
    const before = sessionStorage.getItem(NAME);
    // A window that was duplicated has the other one's name.
    if (before && (!hasLocks() || (await hold(before)))) own = before;
    else if (hasLocks()) await hold(own);
    sessionStorage.setItem(NAME, own);
  } catch {
    // Without storage, nothing is kept anyway.
  }
  return {
    own,
    isOpen: async (name) => {
      if (!hasLocks()) return false;
      const { held } = await navigator.locks.query();
      return held?.some((lock) => lock.name === LOCK + name) ?? false;
    },
  };
}

/** Addresses without TLS have no locks. */
function hasLocks(): boolean {
  return "locks" in navigator;
}

/** Hold a name as long as the window is open; false where another one holds it. */
function hold(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    void navigator.locks.request(LOCK + name, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise(() => {});
    });
  });
}
