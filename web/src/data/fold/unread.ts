import type { ConversationKey } from "../conversations";
import type { Draft } from "../draft";
import { withId, withoutIds } from "../lists";

/** Mutable unread state. */
export interface UnreadDraft {
  where: Map<number, ConversationKey>;
  by: Map<ConversationKey, readonly number[]>;
  mentions: Set<number>;
}

export function unreadDraft(draft: Draft, change: (unread: UnreadDraft) => void): void {
  const { where, by, mentions, incomplete } = draft.data.unread;
  const next = { where: new Map(where), by: new Map(by), mentions: new Set(mentions) };
  change(next);
  draft.put("unread", { ...next, incomplete });
}

export function put(unread: UnreadDraft, id: number, key: ConversationKey): void {
  const before = unread.where.get(id);
  if (before === key) return;
  if (before !== undefined) leave(unread, id, before);
  unread.where.set(id, key);
  unread.by.set(key, withId(unread.by.get(key) ?? [], id));
}

export function forget(unread: UnreadDraft, id: number): void {
  const key = unread.where.get(id);
  if (key === undefined) return;
  unread.where.delete(id);
  unread.mentions.delete(id);
  leave(unread, id, key);
}

function leave(unread: UnreadDraft, id: number, key: ConversationKey): void {
  const rest = withoutIds(unread.by.get(key) ?? [], new Set([id]));
  if (rest.length) unread.by.set(key, rest);
  else unread.by.delete(key);
}
