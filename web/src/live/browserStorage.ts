/** What this browser keeps for an account, across reloads. Without storage, nothing is kept. */

export class Kept {
  #prefix: string;

  /** `account` names the organization and the person, such as `https://cafe.example#5`. */
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
      // Full, or forbidden: it is still in memory.
    }
  }

  forget(name: string): void {
    try {
      localStorage.removeItem(this.#prefix + name);
    } catch {
      // As above.
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

  /** Hear of what another window has changed. Returns how to stop. */
  onChange(call: (name: string) => void): () => void {
    const heard = (event: StorageEvent) => {
      if (event.key?.startsWith(this.#prefix)) call(event.key.slice(this.#prefix.length));
    };
    window.addEventListener("storage", heard);
    return () => window.removeEventListener("storage", heard);
  }
}

/** Names what is made here, and nothing else anywhere. */
export function newId(): string {
  return `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 9)}`;
}
