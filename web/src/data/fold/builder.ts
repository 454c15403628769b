import type { ServerEvent } from "../../wire/events";
import type { Data } from "../data";

/** Applies one kind of event. */
export type Fold = (draft: DataBuilder, event: ServerEvent) => void;

type Slice = keyof Data;
type MapSlice = {
  [K in Slice]: Data[K] extends ReadonlyMap<unknown, unknown> ? K : never;
}[Slice];
type SetSlice = { [K in Slice]: Data[K] extends ReadonlySet<unknown> ? K : never }[Slice];
type MutableMap<M> = M extends ReadonlyMap<infer K, infer V> ? Map<K, V> : never;
type MutableSet<S> = S extends ReadonlySet<infer V> ? Set<V> : never;

/** The next `Data` while events are folded: copies each slice when it first changes. */
export class DataBuilder {
  readonly data: Data;
  #own = new Set<Slice>();

  constructor(before: Data) {
    this.data = { ...before };
  }

  /** A mutable copy of a slice. */
  map<K extends MapSlice>(name: K): MutableMap<Data[K]> {
    if (!this.#own.has(name)) {
      this.#own.add(name);
      (this.data as Record<Slice, unknown>)[name] = new Map(
        this.data[name] as ReadonlyMap<unknown, unknown>,
      );
    }
    return this.data[name] as unknown as MutableMap<Data[K]>;
  }

  /** Like `map`, for a set. */
  set<K extends SetSlice>(name: K): MutableSet<Data[K]> {
    if (!this.#own.has(name)) {
      this.#own.add(name);
      (this.data as Record<Slice, unknown>)[name] = new Set(this.data[name] as Iterable<unknown>);
    }
    return this.data[name] as unknown as MutableSet<Data[K]>;
  }

  /** Replace a slice. */
  put<K extends Slice>(name: K, value: Data[K]): void {
    this.data[name] = value;
  }

  /** Change one record of a slice, if it exists. */
  change<K extends MapSlice, M extends MutableMap<Data[K]>>(
    name: K,
    key: M extends Map<infer Key, unknown> ? Key : never,
    changes: M extends Map<unknown, infer V> ? Partial<V> : never,
  ): void {
    const before = (this.data[name] as ReadonlyMap<unknown, object>).get(key);
    if (before)
      (this.map(name) as unknown as Map<unknown, object>).set(
        key,
        Object.assign({}, before, changes),
      );
  }
}
