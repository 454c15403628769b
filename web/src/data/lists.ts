/** Lists of messages: what of a narrow is loaded, without a gap. */

import type { Narrow } from "./narrow";

export interface MessageList {
  narrow: Narrow;
  /** In order. Everything of the narrow between the first and the last is here. */
  ids: readonly number[];
  foundOldest: boolean;
  foundNewest: boolean;
  /** Something may be missing or out of place: it is to be asked for again. */
  stale: boolean;
}

/** Where an ID is in a sorted list, or would be. */
export function placeOf(ids: readonly number[], id: number): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ids[middle] ?? 0) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function has(ids: readonly number[], id: number): boolean {
  return ids[placeOf(ids, id)] === id;
}

/** The list with an ID at its place. */
export function withId(ids: readonly number[], id: number): readonly number[] {
  const place = placeOf(ids, id);
  return ids[place] === id ? ids : [...ids.slice(0, place), id, ...ids.slice(place)];
}

export function withoutIds(ids: readonly number[], gone: ReadonlySet<number>): readonly number[] {
  const kept = ids.filter((id) => !gone.has(id));
  return kept.length === ids.length ? ids : kept;
}

/** Two sorted lists as one. */
export function merged(one: readonly number[], other: readonly number[]): number[] {
  return [...new Set([...one, ...other])].sort((a, b) => a - b);
}
