/** Lists of messages: the loaded part of a narrow, without gaps. */

import type { Narrow } from "./conversations";

export interface MessageList {
  narrow: Narrow;
  /** In order, without gaps between the first and the last. */
  ids: readonly number[];
  foundOldest: boolean;
  foundNewest: boolean;
  /** Messages may be missing or misplaced: reload. */
  stale: boolean;
}

/** Index of an ID in a sorted list, or where it would be inserted. */
export function sortedIndex(ids: readonly number[], id: number): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ids[middle] ?? 0) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function hasId(ids: readonly number[], id: number): boolean {
  return ids[sortedIndex(ids, id)] === id;
}

/** The list with an ID inserted in order. */
export function withId(ids: readonly number[], id: number): readonly number[] {
  const place = sortedIndex(ids, id);
  return ids[place] === id ? ids : [...ids.slice(0, place), id, ...ids.slice(place)];
}

export function withoutIds(
  ids: readonly number[],
  removed: ReadonlySet<number>,
): readonly number[] {
  const kept = ids.filter((id) => !removed.has(id));
  return kept.length === ids.length ? ids : kept;
}

/** Merge two sorted lists. */
export function mergeIds(first: readonly number[], other: readonly number[]): number[] {
  return [...new Set([...first, ...other])].sort((a, b) => a - b);
}

/** The length at which a list is trimmed, and its length afterwards. */
export const MAX_LENGTH = 3000;
const TRIM_LENGTH = 2000;

/** Trim the end that is farther from the message being read. */
export function trimAround(list: MessageList, at: number): MessageList {
  const { ids } = list;
  if (ids.length <= MAX_LENGTH) return list;
  const place = sortedIndex(ids, at);
  const start = Math.max(0, Math.min(place - TRIM_LENGTH / 2, ids.length - TRIM_LENGTH));
  const end = start + TRIM_LENGTH;
  return {
    ...list,
    ids: ids.slice(start, end),
    foundOldest: list.foundOldest && start === 0,
    foundNewest: list.foundNewest && end >= ids.length,
  };
}

/** Trim the oldest messages of a list in the background. */
export function trimOldest(list: MessageList): MessageList {
  return list.ids.length <= MAX_LENGTH + 1000
    ? list
    : { ...list, ids: list.ids.slice(-TRIM_LENGTH), foundOldest: false };
}

/** Messages in lists, plus the newest others: pending requests may include them. */
export function listedMessages<M>(
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
