import {
  channelOfKey,
  conversationOf,
  type Conversation,
  type ConversationKey,
} from "./conversations";
import { isFollowed, isMuted, isOpen, mentionCounts } from "./counts";
import type { Data } from "./data";
import type { Latest, RecentMessage } from "./recent";
import { sidebarSections } from "./sidebar";

export interface InboxRow {
  key: ConversationKey;
  conversation: Conversation;
  /** Unread messages, muted ones included. */
  unread: number;
  /** Unread messages that call for attention: in muted conversations only mentions (as in
   * `unreadCounts`). */
  calls: number;
  mentioned: boolean;
  muted: boolean;
  followed: boolean;
  participated: boolean;
  newest: number;
  /** The newest message, if it is loaded. */
  last: RecentMessage | null;
}

/** All conditions that are set must hold. */
export interface InboxFilter {
  unread: boolean;
  /** Mentioned, or topic followed. */
  called: boolean;
  direct: boolean;
  participated: boolean;
  /** Whether to include muted conversations. */
  muted: boolean;
}

export const EVERYTHING: InboxFilter = {
  unread: false,
  called: false,
  direct: false,
  participated: false,
  muted: false,
};

/** Unread conversations first, all by time, or by channel. */
export type InboxOrder = "unread" | "newest" | "channel";

type InboxKnown = Pick<
  Data,
  | "me"
  | "unread"
  | "channels"
  | "topicPolicies"
  | "topicNames"
  | "mutedUsers"
  | "settings"
  | "directs"
>;

const NO_IDS: readonly number[] = [];

/** What a row is made of besides the slices that all rows depend on. */
interface MadeRow {
  row: InboxRow;
  ids: readonly number[];
  previous: Latest | undefined;
}

/** A row for each conversation, unordered. Rows that didn't change since the last call are the same
 * objects, because there may be thousands. */
export class InboxRows {
  #made = new Map<ConversationKey, MadeRow>();
  #shared: readonly unknown[] = [];

  of(slices: InboxKnown, latest: ReadonlyMap<ConversationKey, Latest>): InboxRow[] {
    // Read each slice once: a reactive store would be asked thousands of times.
    const { me, unread, channels, topicPolicies, topicNames, mutedUsers, directs } = slices;
    const known = { me, channels, topicPolicies, mutedUsers };
    const shared = [me, channels, topicPolicies, topicNames, mutedUsers];
    const isSame = shared.every((slice, at) => slice === this.#shared[at]);
    const earlier = isSame ? this.#made : new Map<ConversationKey, MadeRow>();
    const called = mentionCounts(unread);
    const made = new Map<ConversationKey, MadeRow>();
    const rows: InboxRow[] = [];
    for (const key of new Set([...unread.by.keys(), ...latest.keys(), ...directs.keys()])) {
      const ids = unread.by.get(key) ?? NO_IDS;
      const previous = latest.get(key);
      const calls = called.get(key) ?? 0;
      const newest = Math.max(previous?.last.id ?? 0, ids.at(-1) ?? 0, directs.get(key) ?? 0);
      let one = earlier.get(key);
      if (!one || !isMadeOf(one, ids, previous, newest, calls)) {
        if (!isOpen(known, key)) continue;
        const muted = isMuted(known, key);
        const row = {
          key,
          conversation: conversationOf(key, topicNames),
          unread: ids.length,
          calls: muted ? calls : ids.length,
          mentioned: calls > 0,
          muted,
          followed: isFollowed(known, key),
          participated: previous?.mine ?? false,
          newest,
          last: previous?.last.id === newest ? previous.last : null,
        };
        one = { row, ids, previous };
      }
      made.set(key, one);
      rows.push(one.row);
    }
    this.#made = made;
    this.#shared = shared;
    return rows;
  }
}

function isMadeOf(
  { row, ids, previous }: MadeRow,
  idsNow: readonly number[],
  previousNow: Latest | undefined,
  newest: number,
  calls: number,
): boolean {
  return (
    ids === idsNow &&
    previous?.last === previousNow?.last &&
    previous?.mine === previousNow?.mine &&
    row.newest === newest &&
    row.mentioned === calls > 0 &&
    (!row.muted || row.calls === calls)
  );
}

/** A row for each conversation, unordered. */
export function inboxRows(
  slices: InboxKnown,
  latest: ReadonlyMap<ConversationKey, Latest>,
): InboxRow[] {
  return new InboxRows().of(slices, latest);
}

export function isWanted(row: InboxRow, filter: InboxFilter): boolean {
  if (row.muted && !row.mentioned && !filter.muted) return false;
  if (filter.unread && !row.unread) return false;
  if (filter.called && !row.mentioned && !row.followed) return false;
  if (filter.direct && row.conversation.kind !== "direct") return false;
  return !filter.participated || row.participated;
}

/** Rows in order, and how many come before the first without unread messages. */
export function inOrder(
  rows: readonly InboxRow[],
  order: InboxOrder,
): { rows: InboxRow[]; fresh: number } {
  const isFresh = (row: InboxRow) => Number(order === "unread" && row.unread > 0);
  const sorted = [...rows].sort((a, b) => isFresh(b) - isFresh(a) || b.newest - a.newest);
  return { rows: sorted, fresh: sorted.filter(isFresh).length };
}

type NextKnown = InboxKnown & Pick<Data, "folders">;

/** The next unread conversation after `here`, in the order of the sidebar, wrapping around. */
export function nextUnread(
  known: NextKnown,
  current: ConversationKey | null,
  kind: "topic" | "direct",
): InboxRow | null {
  const places = new Map<number | null, number>(
    sidebarSections(known)
      .flatMap((section) => section.channels)
      .map((channel, at) => [channel.stream_id, at]),
  );
  const placeOf = (row: InboxRow) => places.get(channelOfKey(row.key)) ?? 0;
  const rows = inboxRows(known, new Map())
    .filter((row) => row.calls && row.conversation.kind === kind)
    .sort(
      (a, b) =>
        placeOf(a) - placeOf(b) || Number(b.mentioned) - Number(a.mentioned) || b.newest - a.newest,
    );
  const at = rows.findIndex((row) => row.key === current);
  const rest =
    at < 0 ? stayInChannel(rows, current) : [...rows.slice(at + 1), ...rows.slice(0, at)];
  return rest[0] ?? null;
}

/** A conversation that was just read isn't in the list; continue in its channel if possible. */
function stayInChannel(rows: readonly InboxRow[], current: ConversationKey | null): InboxRow[] {
  const channelId = current === null ? null : channelOfKey(current);
  const near = rows.findIndex((row) => channelId !== null && channelOfKey(row.key) === channelId);
  return near < 0 ? [...rows] : [...rows.slice(near), ...rows.slice(0, near)];
}

interface ListShape {
  count: number;
  /** Row height, in pixels. */
  row: number;
  /** Row after the divider; 0 for none. */
  divided: number;
  /** Height of the divider. */
  divider: number;
}

interface RowWindow {
  /** First row, and the row after the last. */
  start: number;
  end: number;
  /** Space above them and in total, in pixels. */
  above: number;
  whole: number;
}

/** Extra rows above and below the viewport. */
export const SPARE_ROWS = 8;

/** Offset of a row's top in the list. */
export function topOf(shape: ListShape, at: number): number {
  return at * shape.row + (shape.divided && at >= shape.divided ? shape.divider : 0);
}

/** The rows to render for a viewport at `from` with `height`. */
export function rowWindow(
  shape: ListShape,
  from: number,
  height: number,
  spare = SPARE_ROWS,
): RowWindow {
  const first = Math.floor((from - shape.divider) / shape.row) - spare;
  const start = Math.max(0, Math.min(first, shape.count - 1));
  const end = Math.min(shape.count, Math.ceil((from + height) / shape.row) + spare);
  // The divider belongs to the row below it.
  const isBelow = shape.divided > 0 && start > shape.divided;
  return {
    start,
    end: Math.max(start, end),
    above: start * shape.row + (isBelow ? shape.divider : 0),
    whole: topOf(shape, shape.count),
  };
}
