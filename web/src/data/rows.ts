/** How messages stand in a list: what stands before each, and which go together. */

import type { ConversationKey } from "./conversations";
import type { Message } from "./data";
import { dayOf } from "./times";
import type { Seconds } from "../wire/objects";

export interface Row {
  id: number;
  message: Message;
  /** The day begins before it: any time of that day. */
  day: Seconds | null;
  /** Another conversation begins before it. */
  conversation: ConversationKey | null;
  /** What is new begins before it. */
  marker: boolean;
  /** It begins what its sender says: with picture and name. */
  first: boolean;
  /** Of somebody whom one has muted. */
  muted: boolean;
}

export interface RowsOptions {
  /** Whether messages of several conversations are mixed: each then says where it belongs. */
  mixed: boolean;
  /** The first message that is new. */
  marker: number | null;
  mutedUsers: ReadonlySet<number>;
}

/** Messages of one person within so many seconds go together. */
const TOGETHER = 600;

/** The rows of `ids[start]` to `ids[end]` (without); messages that are not known are left out. */
export function rowsOf(
  ids: readonly number[],
  messages: ReadonlyMap<number, Message>,
  start: number,
  end: number,
  options: RowsOptions,
): Row[] {
  const rows: Row[] = [];
  let before = start > 0 ? messages.get(ids[start - 1] ?? 0) : undefined;
  for (let at = start; at < end; at += 1) {
    const message = messages.get(ids[at] ?? 0);
    if (!message) continue;
    rows.push(rowOf(message, before, options));
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
    message.timestamp - before.timestamp > TOGETHER;
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

const AGENT = "agent ";

/** The agent that sent the message in its sender's name; empty where none did. */
export function agentOf(message: Message): string {
  return message.client?.startsWith(AGENT) ? message.client.slice(AGENT.length) : "";
}

/** How high rows are: measured ones exactly, others by what the measured ones are together. */
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

  /** Of `ids[start]` to `ids[end]` (without) together. */
  between(ids: readonly number[], start: number, end: number): number {
    let sum = 0;
    for (let at = start; at < end; at += 1) sum += this.of(ids[at] ?? 0);
    return Math.round(sum);
  }

  /** Which of them is so far below the first one's top. */
  at(ids: readonly number[], distance: number): number {
    let top = 0;
    for (let at = 0; at < ids.length; at += 1) {
      top += this.of(ids[at] ?? 0);
      if (top > distance) return at;
    }
    return Math.max(0, ids.length - 1);
  }

  /** Forget those that are in no list any more, once there are many. */
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
