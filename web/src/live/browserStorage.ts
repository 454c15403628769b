/** An account's local storage. Does nothing if storage isn't available. */

export class Kept {
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
      return [];
    }
  }

  /** Listen for changes by other windows. Returns a function that stops. */
  onChange(call: (name: string) => void): () => void {
    const heard = (event: StorageEvent) => {
      if (event.key?.startsWith(this.#prefix)) call(event.key.slice(this.#prefix.length));
    };
    window.addEventListener("storage", heard);
    return () => window.removeEventListener("storage", heard);
  }
}

/** A unique ID. */
export function newId(): string {
  return `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 9)}`;
}
