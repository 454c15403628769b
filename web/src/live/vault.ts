/**
 * What this browser keeps of an account's reading: records that are sealed (AES-GCM) with a key that no
 * script can read out. The key lies beside them; it goes with them, when the session ends.
 */

import { DATABASE } from "./forgetting";

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

export class Vault {
  private constructor(
    private readonly database: IDBDatabase,
    private readonly key: CryptoKey,
  ) {}

  /**
   * Open it; null where this browser keeps nothing, or the page did not come by https: then there is
   * no cipher. `make`: whether it is made where there is none.
   */
  static async open(make: boolean): Promise<Vault | null> {
    if (!globalThis.crypto?.subtle || !globalThis.indexedDB) return null;
    try {
      const request = indexedDB.open(DATABASE, 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore(RECORDS);
        request.result.createObjectStore(KEYS);
      };
      const database = await done(request);
      // It is deleted, perhaps by another window: nobody stands in the way.
      database.onversionchange = () => database.close();
      const key = await keyOf(database, make);
      if (key) return new Vault(database, key);
      database.close();
    } catch {
      // Some browsers keep nothing for anybody, in private windows for example.
    }
    return null;
  }

  close(): void {
    this.database.close();
  }

  /** The names of all records: they say nothing of what is in them. */
  async names(): Promise<string[]> {
    const found = await done(this.#records("readonly").getAllKeys());
    return found.map(String);
  }

  /** What was put under the name; null where there is nothing, or it cannot be opened. */
  async get<T>(name: string): Promise<T | null> {
    const found = (await done(this.#records("readonly").get(name))) as Sealed | undefined;
    if (!found) return null;
    try {
      const how = { name: "AES-GCM", iv: found.iv };
      const plain = await crypto.subtle.decrypt(how, this.key, found.sealed);
      return JSON.parse(new TextDecoder().decode(plain)) as T;
    } catch {
      return null;
    }
  }

  /** Put a value; answers how many bytes it takes. */
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

/** The key, which is made once. */
async function keyOf(database: IDBDatabase, make: boolean): Promise<CryptoKey | null> {
  const read = () =>
    done(database.transaction(KEYS).objectStore(KEYS).get(KEY)) as Promise<CryptoKey | undefined>;
  const known = await read();
  if (known || !make) return known ?? null;
  const made = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, [
    "encrypt",
    "decrypt",
  ]);
  try {
    await done(database.transaction(KEYS, "readwrite").objectStore(KEYS).add(made, KEY));
    return made;
  } catch {
    // Another window was quicker.
    return (await read()) ?? null;
  }
}
