/** Stores what the user reads for offline use, and removes what exceeds the limits, changed, became
 * inaccessible, or belongs to another account. */

import { type Message, messageOf } from "../data/data";
import {
  isWorthStoring,
  isReadable,
  LIMITS,
  offlinePage,
  peopleNeeded,
  offlineSnapshot,
  type OfflinePage,
} from "../data/offline";
import { nameOf } from "../data/narrow";
import { changedMessageIds, type ServerEvent, type Snapshot } from "../wire/events";
import { get } from "../wire/http";
import { newId, deleteOfflineData, offlineSession, sessionMark } from "./storage.svelte";
import type { MessagesResponse } from "../wire/early";
import type { Store } from "./store.svelte";
import { EncryptedStore } from "./encryptedStore";

const BEGINNING = "beginning";
/** How often to check for changes, and the delay after losing access, in ms. */
const CHECK_INTERVAL = 10_000;
const STORE_DELAY = 500;
/** Messages per request by ID. */
const BATCH_SIZE = 400;

/** The data that an offline client starts with. */
interface OfflineStart {
  account: string;
  /** When it was stored, in ms. */
  at: number;
  snapshot: Snapshot;
}

interface Record {
  id: string;
  page: OfflinePage;
  bytes: number;
}

/** The stored data; null if there isn't any. */
export async function loadOfflineData(): Promise<{
  beginning: OfflineStart;
  pages: OfflinePage[];
} | null> {
  const vault = await EncryptedStore.open(false);
  if (!vault) return null;
  try {
    const beginning = await vault.get<OfflineStart>(BEGINNING);
    if (!beginning) return null;
    return { beginning, pages: (await recordsOf(vault)).map((record) => record.page) };
  } finally {
    vault.close();
  }
}

async function recordsOf(vault: EncryptedStore): Promise<Record[]> {
  const records: Record[] = [];
  for (const id of await vault.names()) {
    if (id === BEGINNING) continue;
    const page = await vault.get<OfflinePage>(id);
    if (page) records.push({ id, page, bytes: JSON.stringify(page).length });
  }
  return records;
}

/** Start storing. Returns a function that stops. */
export async function storeOfflineData(
  store: Store,
  account: string,
  snapshot: () => Snapshot,
  isOnline: () => boolean,
): Promise<() => void> {
  let vault = await EncryptedStore.open(true);
  const before = await vault?.get<OfflineStart>(BEGINNING);
  if (before && before.account !== account) {
    vault?.close();
    await deleteOfflineData(true);
    vault = await EncryptedStore.open(true);
  }
  if (!vault) return () => undefined;
  const keeper = new OfflineWriter(store, account, snapshot, isOnline, vault);
  await keeper.begin();
  return () => keeper.stop();
}

class OfflineWriter {
  /** By list name, most recently viewed last. */
  #records = new Map<string, Record>();
  #seen: unknown[] = [];
  #restarts: number;
  #stops: (() => void)[] = [];
  #soon: ReturnType<typeof setTimeout> | undefined;
  /** Runs tasks one at a time. */
  #work: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(
    private readonly store: Store,
    private readonly account: string,
    private readonly snapshot: () => Snapshot,
    private readonly isOnline: () => boolean,
    private readonly vault: EncryptedStore,
  ) {
    this.#restarts = store.restarts;
  }

  async begin(): Promise<void> {
    for (const record of await recordsOf(this.vault))
      this.#records.set(nameOf(record.page.narrow), record);
    this.#stops.push(this.store.onEvent((event) => this.#hear(event)));
    const timer = setInterval(() => this.#save(), CHECK_INTERVAL);
    const hidden = () => document.visibilityState === "hidden" && this.#save();
    document.addEventListener("visibilitychange", hidden);
    this.#stops.push(
      () => clearInterval(timer),
      () => clearTimeout(this.#soon),
      () => document.removeEventListener("visibilitychange", hidden),
    );
    this.#do(() => this.#prove());
    this.#save();
  }

  stop(): void {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    this.vault.close();
  }

  /** Failed tasks are retried next time. */
  #do(task: () => Promise<void>): void {
    this.#work = this.#work.then(() => (this.#stopped ? undefined : task())).catch(() => undefined);
  }

  #hear(event: ServerEvent): void {
    const ids = new Set(changedMessageIds(event));
    const all = event["all"] === true;
    if (all) this.#do(() => this.#prove());
    // Loaded lists are kept current anyway.
    const touched = [...this.#records].filter(
      ([name, { page }]) =>
        !this.store.data.lists.has(name) && page.messages.some((message) => ids.has(message.id)),
    );
    for (const [name] of touched) this.#do(() => this.#drop(name));
    if (ids.size || ["stream", "subscription", "realm_user"].includes(event.type)) {
      clearTimeout(this.#soon);
      this.#soon = setTimeout(() => this.#save(), STORE_DELAY);
    }
  }

  /** Ask the server whether stored messages are unchanged and accessible. */
  async #prove(): Promise<void> {
    const ids = [...new Set([...this.#records.values()].flatMap(({ page }) => idsOf(page)))];
    const now = new Map<number, Message>();
    for (let first = 0; first < ids.length; first += BATCH_SIZE) {
      const { messages } = await get<MessagesResponse>("/messages", {
        message_ids: ids.slice(first, first + BATCH_SIZE),
        client_gravatar: true,
        apply_markdown: true,
        allow_empty_topic_name: true,
      });
      for (const wire of messages) {
        now.set(wire.id, messageOf(wire, wire.flags ?? [], this.store.me));
      }
    }
    for (const [name, record] of [...this.#records]) {
      const readable = record.page.messages.flatMap((message) => {
        const current = now.get(message.id);
        // Moved messages belong to another list.
        return current && current.key === message.key ? current : [];
      });
      if (!readable.length) await this.#drop(name);
      else if (JSON.stringify(readable) !== JSON.stringify(record.page.messages)) {
        await this.#put(name, { ...record.page, messages: readable });
      }
    }
  }

  #save(): void {
    this.#do(async () => {
      const { store } = this;
      // Offline, nothing is newer.
      if (!this.isOnline()) return;
      if (this.#restarts !== store.restarts) {
        this.#restarts = store.restarts;
        await this.#prove();
      }
      const { data } = store;
      const seen = [data.lists, data.messages, data.channels, data.settings];
      if (seen.every((id, place) => id === this.#seen[place])) return;
      this.#seen = seen;
      for (const [name, list] of data.lists) {
        // Skip lists that were only prefetched.
        const isVisited = store.visitedLists.has(name) || this.#records.has(name);
        if (!isVisited || !isWorthStoring(list)) continue;
        const page = offlinePage(data, list);
        const before = this.#records.get(name)?.page;
        if (!isSame(page, before)) await this.#put(name, page);
      }
      for (const [name, { page }] of [...this.#records]) {
        if (!isReadable(data, page)) await this.#drop(name);
      }
      await this.#bound();
      const pages = [...this.#records.values()].map((record) => record.page);
      const snapshot = offlineSnapshot(
        this.snapshot(),
        data,
        peopleNeeded(pages.flatMap((page) => page.messages)),
      );
      const beginning: OfflineStart = { account: this.account, at: Date.now(), snapshot };
      await this.vault.put(BEGINNING, beginning);
      offlineSession.value = sessionMark();
    });
  }

  async #put(name: string, page: OfflinePage): Promise<void> {
    const id = this.#records.get(name)?.id ?? newId();
    const bytes = await this.vault.put(id, page);
    this.#records.delete(name);
    this.#records.set(name, { id, page, bytes });
  }

  async #drop(name: string): Promise<void> {
    const record = this.#records.get(name);
    if (!record) return;
    this.#records.delete(name);
    await this.vault.remove(record.id);
  }

  /** Evict the least recently viewed pages. */
  async #bound(): Promise<void> {
    let bytes = [...this.#records.values()].reduce((sum, record) => sum + record.bytes, 0);
    for (const [name, record] of [...this.#records]) {
      if (this.#records.size <= LIMITS.pages && bytes <= LIMITS.bytes) return;
      bytes -= record.bytes;
      await this.#drop(name);
    }
  }
}

const idsOf = (page: OfflinePage) => page.messages.map((message) => message.id);

/** Whether nothing changed: equal messages are identical objects. */
function isSame(page: OfflinePage, before: OfflinePage | undefined): boolean {
  return (
    before !== undefined &&
    before.foundOldest === page.foundOldest &&
    before.messages.length === page.messages.length &&
    before.messages.every((message, place) => message === page.messages[place])
  );
}
