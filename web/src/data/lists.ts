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

/** How long a list gets before its far end is let go, and how long it is then. */
export const LONGEST = 3000;
const KEPT = 2000;

/** The list without what is farthest from a message that one reads, once it is too long. */
export function bounded(list: MessageList, at: number): MessageList {
  const { ids } = list;
  if (ids.length <= LONGEST) return list;
  const place = placeOf(ids, at);
  const start = Math.max(0, Math.min(place - KEPT / 2, ids.length - KEPT));
  const end = start + KEPT;
  return {
    ...list,
    ids: ids.slice(start, end),
    foundOldest: list.foundOldest && start === 0,
    foundNewest: list.foundNewest && end >= ids.length,
  };
}

/** A list that nobody looks at, as it grows: its oldest go. */
export function shortened(list: MessageList): MessageList {
  return list.ids.length <= LONGEST + 1000
    ? list
    : { ...list, ids: list.ids.slice(-KEPT), foundOldest: false };
}

/** Messages that lists show, and the last few others: one of them may belong to what is awaited. */
export function listed<M>(
  messages: ReadonlyMap<number, M>,
  lists: Iterable<MessageList>,
  others = 300,
): Map<number, M> {
  const shown = new Set<number>();
  for (const list of lists) for (const id of list.ids) shown.add(id);
  const loose = [...messages.keys()].filter((id) => !shown.has(id)).slice(-others);
  for (const id of loose) shown.add(id);
  return new Map([...messages].filter(([id]) => shown.has(id)));
}
