/** Layout of message rows: dividers and grouping. */

import type { ConversationKey } from "./conversations";
import type { Message } from "./data";
import { dayOf } from "./times";
import type { Seconds } from "../wire/objects";

export interface Row {
  id: number;
  message: Message;
  /** A date divider comes before it: any time of that day. */
  day: Seconds | null;
  /** A conversation header comes before it. */
  conversation: ConversationKey | null;
  /** The unread marker comes before it. */
  marker: boolean;
  /** Starts a group: show avatar and name. */
  first: boolean;
  /** From a muted user. */
  muted: boolean;
}

export interface RowsOptions {
  /** Whether the list mixes conversations, so that each shows a header. */
  mixed: boolean;
  /** The first unread message. */
  marker: number | null;
  mutedUsers: ReadonlySet<number>;
}

/** Messages from one sender within this many seconds are grouped. */
const GROUPING_SECONDS = 600;

/** Rows for `ids[start]` up to `ids[end]` (exclusive), without unloaded messages. Rows that are the
 * same as before keep their objects, so that their components don't compute anything again. */
export function rowsOf(
  ids: readonly number[],
  messages: ReadonlyMap<number, Message>,
  start: number,
  end: number,
  options: RowsOptions,
  earlier: readonly Row[] = [],
): Row[] {
  const rows: Row[] = [];
  const known = new Map(earlier.map((row) => [row.id, row]));
  let before = start > 0 ? messages.get(ids[start - 1] ?? 0) : undefined;
  for (let at = start; at < end; at += 1) {
    const message = messages.get(ids[at] ?? 0);
    if (!message) continue;
    const row = rowOf(message, before, options);
    const same = known.get(row.id);
    rows.push(same && isSame(row, same) ? same : row);
    before = message;
  }
  return rows;
}

function rowOf(message: Message, before: Message | undefined, options: RowsOptions): Row {
  const newDay = !before || dayOf(before.timestamp) !== dayOf(message.timestamp);
  const newPlace = options.mixed && (newDay || before?.key !== message.key);
  const marker = message.id === options.marker;
  const muted = options.mutedUsers.has(message.sender_id);
  const first =
    newDay ||
    newPlace ||
    marker ||
    message.is_me_message ||
    before?.sender_id !== message.sender_id ||
    agentOf(before) !== agentOf(message) ||
    before.is_me_message ||
    message.timestamp - before.timestamp > GROUPING_SECONDS;
  return {
    id: message.id,
    message,
    day: newDay ? message.timestamp : null,
    conversation: newPlace ? message.key : null,
    marker,
    first,
    muted,
  };
}

function isSame(row: Row, other: Row): boolean {
  return (Object.keys(row) as (keyof Row)[]).every((name) => row[name] === other[name]);
}

const AGENT = "agent ";

/** The agent that sent the message on the sender's behalf; empty if none did. */
export function agentOf(message: Message): string {
  return message.client?.startsWith(AGENT) ? message.client.slice(AGENT.length) : "";
}

/** Row heights: measured, or estimated from the average of measured ones. */
export class Heights {
  #known = new Map<number, number>();
  #sum = 0;

  set(id: number, height: number): void {
    this.#sum += height - (this.#known.get(id) ?? 0);
    this.#known.set(id, height);
  }

  get guess(): number {
    return this.#known.size ? this.#sum / this.#known.size : 56;
  }

  of(id: number): number {
    return this.#known.get(id) ?? this.guess;
  }

  /** Total height of `ids[start]` up to `ids[end]` (exclusive). */
  between(ids: readonly number[], start: number, end: number): number {
    let sum = 0;
    for (let at = start; at < end; at += 1) sum += this.of(ids[at] ?? 0);
    return Math.round(sum);
  }

  /** The row at a distance from the first one's top. */
  at(ids: readonly number[], distance: number): number {
    let top = 0;
    for (let at = 0; at < ids.length; at += 1) {
      top += this.of(ids[at] ?? 0);
      if (top > distance) return at;
    }
    return Math.max(0, ids.length - 1);
  }

  /** Drop heights of rows no longer in a list once there are many. */
  keep(ids: readonly number[]): void {
    if (this.#known.size < 2 * ids.length + 1000) return;
    const before = this.#known;
    this.#known = new Map();
    this.#sum = 0;
    for (const id of ids) {
      const height = before.get(id);
      if (height !== undefined) this.set(id, height);
    }
  }
}
