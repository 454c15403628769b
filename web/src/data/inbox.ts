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

/** The data that rows are computed from. */
interface RowInputs {
  slices: Omit<InboxKnown, "settings">;
  latest: ReadonlyMap<ConversationKey, Latest>;
  mentions: ReadonlyMap<ConversationKey, number>;
}

/** A row for each conversation, the newest first. Later calls make only rows that changed, since
 * there may be thousands. */
export class InboxRows {
  #before: RowInputs | undefined;
  #byKey = new Map<ConversationKey, InboxRow>();
  #rows: InboxRow[] = [];

  of(known: InboxKnown, latest: ReadonlyMap<ConversationKey, Latest>): InboxRow[] {
    // Read each slice once: a reactive store would be asked thousands of times.
    const { me, unread, channels, topicPolicies, topicNames, mutedUsers, directs } = known;
    const slices = { me, unread, channels, topicPolicies, topicNames, mutedUsers, directs };
    const before = this.#before;
    const isSame = before?.slices.unread === unread;
    const now = { slices, latest, mentions: isSame ? before.mentions : mentionCounts(unread) };
    const gone = new Set<InboxRow>();
    const made: InboxRow[] = [];
    for (const key of changedRows(before, now)) {
      const previous = this.#byKey.get(key);
      if (previous) gone.add(previous);
      const row = rowOf(key, now);
      if (row) {
        this.#byKey.set(key, row);
        made.push(row);
      } else this.#byKey.delete(key);
    }
    this.#before = now;
    if (gone.size || made.length) {
      const kept = gone.size ? this.#rows.filter((row) => !gone.has(row)) : this.#rows;
      this.#rows = [...kept, ...made].sort(byNewest);
    }
    return this.#rows;
  }
}

const byNewest = (a: InboxRow, b: InboxRow) => b.newest - a.newest;

/** The conversations whose rows may have changed. */
function changedRows(before: RowInputs | undefined, now: RowInputs): Set<ConversationKey> {
  const { slices, latest, mentions } = now;
  const { me, channels, topicPolicies, topicNames, mutedUsers } = slices;
  const shared = { me, channels, topicPolicies, topicNames, mutedUsers };
  const names = Object.keys(shared) as (keyof typeof shared)[];
  if (!before || names.some((name) => before.slices[name] !== slices[name])) {
    const maps = before ? [before, now] : [now];
    return new Set(
      maps.flatMap(({ slices, latest }) => [
        ...slices.unread.by.keys(),
        ...latest.keys(),
        ...slices.directs.keys(),
      ]),
    );
  }
  return new Set([
    ...changedKeys(before.slices.unread.by, slices.unread.by),
    ...changedKeys(before.mentions, mentions),
    ...changedKeys(before.slices.directs, slices.directs),
    ...changedKeys(
      before.latest,
      latest,
      (one, other) => one?.last === other?.last && one?.mine === other?.mine,
    ),
  ]);
}

function* changedKeys<Value>(
  before: ReadonlyMap<ConversationKey, Value>,
  now: ReadonlyMap<ConversationKey, Value>,
  isSame = (one: Value | undefined, other: Value | undefined) => one === other,
): Generator<ConversationKey> {
  if (before === now) return;
  for (const [key, value] of now) if (!isSame(before.get(key), value)) yield key;
  for (const key of before.keys()) if (!now.has(key)) yield key;
}

function rowOf(key: ConversationKey, { slices, latest, mentions }: RowInputs): InboxRow | null {
  const { unread, topicNames, directs } = slices;
  const previous = latest.get(key);
  const ids = unread.by.get(key) ?? NO_IDS;
  if (!previous && !unread.by.has(key) && !directs.has(key)) return null;
  if (!isOpen(slices, key)) return null;
  const called = mentions.get(key) ?? 0;
  const muted = isMuted(slices, key);
  const newest = Math.max(previous?.last.id ?? 0, ids.at(-1) ?? 0, directs.get(key) ?? 0);
  return {
    key,
    conversation: conversationOf(key, topicNames),
    unread: ids.length,
    calls: muted ? called : ids.length,
    mentioned: called > 0,
    muted,
    followed: isFollowed(slices, key),
    participated: previous?.mine ?? false,
    newest,
    last: previous?.last.id === newest ? previous.last : null,
  };
}

/** A row for each conversation, the newest first. */
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

/** Rows in order, and how many come before the first without unread messages. Fast if `rows`
 * are already sorted, the newest first. */
export function inOrder(
  rows: readonly InboxRow[],
  order: InboxOrder,
): { rows: InboxRow[]; fresh: number } {
  const isFresh = (row: InboxRow) => order === "unread" && row.unread > 0;
  const fresh = rows.filter(isFresh).sort(byNewest);
  const rest = rows.filter((row) => !isFresh(row)).sort(byNewest);
  return { rows: [...fresh, ...rest], fresh: fresh.length };
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
