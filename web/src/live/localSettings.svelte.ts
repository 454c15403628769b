/** UI preferences stored in this browser. */

const PREFIX = "tertulia:";

export class Remembered<Value> {
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
    return undefined;
  }
}

/** A stored set of names, such as collapsed sections. */
export class RememberedSet {
  #list: Remembered<readonly string[]>;
  #set = $derived.by(() => new Set(this.#list.value));

  constructor(name: string, otherwise: readonly string[] = []) {
    this.#list = new Remembered(name, otherwise);
  }

  has(item: string): boolean {
    return this.#set.has(item);
  }

  put(item: string, within: boolean): void {
    const rest = this.#list.value.filter((one) => one !== item);
    this.#list.value = within ? [...rest, item] : rest;
  }

  toggle(item: string): void {
    this.put(item, !this.has(item));
  }
}
