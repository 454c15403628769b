/** UI preferences stored in this browser. */

import { csrfToken } from "../wire/early";

const PREFIX = "tertulia:";

export class LocalSetting<Value> {
  #value = $state.raw<Value>() as Value;

  constructor(
    private readonly name: string,
    otherwise: Value,
  ) {
    this.#value = read(PREFIX + name) ?? otherwise;
  }

  get value(): Value {
    return this.#value;
  }

  set value(value: Value) {
    this.#value = value;
    try {
      localStorage.setItem(PREFIX + this.name, JSON.stringify(value));
    } catch {
      // Without storage, it lasts until the page closes.
    }
  }
}

function read<Value>(name: string): Value | undefined {
  try {
    const text = localStorage.getItem(name);
    return text === null ? undefined : (JSON.parse(text) as Value);
  } catch {
    // Blocked, or stored by another version.
    return undefined;
  }
}

/** A stored set of names, such as collapsed sections. */
export class LocalSettingSet {
  #list: LocalSetting<readonly string[]>;
  #set = $derived.by(() => new Set(this.#list.value));

  constructor(name: string, otherwise: readonly string[] = []) {
    this.#list = new LocalSetting(name, otherwise);
  }

  has(item: string): boolean {
    return this.#set.has(item);
  }

  put(item: string, within: boolean): void {
    const rest = this.#list.value.filter((other) => other !== item);
    this.#list.value = within ? [...rest, item] : rest;
  }

  toggle(item: string): void {
    this.put(item, !this.has(item));
  }
}

export class AccountStorage {
  #prefix: string;

  /** `account` names the organization and the user, such as `https://cafe.example#5`. */
  constructor(account: string, part: string) {
    this.#prefix = `tertulia:${account}:${part}:`;
  }

  read<T>(name: string): T | null {
    try {
      const text = localStorage.getItem(this.#prefix + name);
      return text === null ? null : (JSON.parse(text) as T);
    } catch {
      // Blocked, or stored by another version.
      return null;
    }
  }

  write(name: string, value: unknown): void {
    try {
      localStorage.setItem(this.#prefix + name, JSON.stringify(value));
    } catch {
      // Full or blocked: the value stays in memory.
    }
  }

  forget(name: string): void {
    try {
      localStorage.removeItem(this.#prefix + name);
    } catch {
      // See above.
    }
  }

  names(): string[] {
    try {
      return Object.keys(localStorage)
        .filter((key) => key.startsWith(this.#prefix))
        .map((key) => key.slice(this.#prefix.length));
    } catch {
      // Blocked.
      return [];
    }
  }

  /** Listen for changes by other windows. Returns a function that stops. */
  onChange(call: (name: string) => void): () => void {
    const listener = (event: StorageEvent) => {
      if (event.key?.startsWith(this.#prefix)) call(event.key.slice(this.#prefix.length));
    };
    window.addEventListener("storage", listener);
    return () => window.removeEventListener("storage", listener);
  }
}

/** A unique ID. */
export function newId(): string {
  return `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 9)}`;
}

/** Used until the server sends the account's language. */
export const lastLanguage = new LocalSetting<string>("language", navigator.language);

export const OFFLINE_DATABASE = "tertulia-offline";
/** How long to wait for other windows, in ms; deletion then completes later. */
const LOCK_TIMEOUT = 5000;
/** Whether the session is over, so that this page must not store data again. */
let isOver = false;

/** The session that stored offline data. Only the same session may show it before the server has
 * confirmed who is signed in. */
export const offlineSession = new LocalSetting<string>("offline-session", "");

/** Identifies the session, but doesn't authenticate it. Empty without a session cookie. */
export function sessionMark(): string {
  return csrfToken().slice(0, 8);
}

export function canStoreOfflineData(): boolean {
  return !isOver;
}

/** `stays`: whether the session does, and may store its own data next. */
export function deleteOfflineData(stays = false): Promise<void> {
  isOver ||= !stays;
  offlineSession.value = "";
  return new Promise((done) => {
    setTimeout(done, LOCK_TIMEOUT);
    try {
      const request = indexedDB.deleteDatabase(OFFLINE_DATABASE);
      request.onsuccess = request.onerror = () => done();
    } catch {
      // Storage isn't available.
      done();
    }
  });
}
