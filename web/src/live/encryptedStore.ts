/** Encrypted local storage (AES-GCM) for offline reading. The key isn't extractable by scripts;
 * it's stored with the records and deleted with them on sign-out. */

import { canStoreOfflineData, OFFLINE_DATABASE } from "./storage.svelte";

const RECORDS = "records";
const KEYS = "keys";
const KEY = "key";

interface Sealed {
  iv: Uint8Array<ArrayBuffer>;
  sealed: ArrayBuffer;
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export class EncryptedStore {
  private constructor(
    private readonly database: IDBDatabase,
    private readonly key: CryptoKey,
  ) {}

  /** Open the database; null if storage isn't available, or without HTTPS, where browsers have no
   * encryption. `make` creates a missing one. */
  static async open(make: boolean): Promise<EncryptedStore | null> {
    if (!globalThis.crypto?.subtle || !globalThis.indexedDB || !canStoreOfflineData()) return null;
    try {
      const request = indexedDB.open(OFFLINE_DATABASE, 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore(RECORDS);
        request.result.createObjectStore(KEYS);
      };
      const database = await done(request);
      // Don't block deletion by another window.
      database.onversionchange = () => database.close();
      const key = await keyOf(database, make);
      if (key) return new EncryptedStore(database, key);
      database.close();
    } catch {
      // Some browsers block storage, for example in private windows.
    }
    return null;
  }

  close(): void {
    this.database.close();
  }

  /** Names of all records; they reveal nothing about the content. */
  async names(): Promise<string[]> {
    const names = await done(this.#records("readonly").getAllKeys());
    return names.map(String);
  }

  /** A record's value; null if it's missing or can't be decrypted. */
  async get<T>(name: string): Promise<T | null> {
    const record = (await done(this.#records("readonly").get(name))) as Sealed | undefined;
    if (!record) return null;
    try {
      const algorithm = { name: "AES-GCM", iv: record.iv };
      const plain = await crypto.subtle.decrypt(algorithm, this.key, record.sealed);
      return JSON.parse(new TextDecoder().decode(plain)) as T;
    } catch {
      // Stored with another key.
      return null;
    }
  }

  /** Store a value. Returns its size in bytes. */
  async put(name: string, value: unknown): Promise<number> {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const plain = new TextEncoder().encode(JSON.stringify(value));
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, this.key, plain);
    await done(this.#records("readwrite").put({ iv, sealed } satisfies Sealed, name));
    return sealed.byteLength;
  }

  async remove(name: string): Promise<void> {
    await done(this.#records("readwrite").delete(name));
  }

  #records(mode: IDBTransactionMode): IDBObjectStore {
    return this.database.transaction(RECORDS, mode).objectStore(RECORDS);
  }
}

/** The key, created once. */
async function keyOf(database: IDBDatabase, make: boolean): Promise<CryptoKey | null> {
  const read = () =>
    done(database.transaction(KEYS).objectStore(KEYS).get(KEY)) as Promise<CryptoKey | undefined>;
  const known = await read();
  if (known || !make) return known ?? null;
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, [
    "encrypt",
    "decrypt",
  ]);
  try {
    await done(database.transaction(KEYS, "readwrite").objectStore(KEYS).add(key, KEY));
    return key;
  } catch {
    // Another window was faster.
    return (await read()) ?? null;
  }
}
