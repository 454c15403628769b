/** Syncs drafts between this device and the server. A local draft remembers the server's version
 * and the versions that this device sent, so that its own echoes aren't mistaken for changes. If both
 * sides changed, the newer one wins and the other becomes a separate draft. Sent and deleted
 * drafts are remembered for a while. */

import type { Draft as ServerDraft, ScheduledMessage } from "../wire/objects";
import { keyOf, others, topicKey, type Conversation, type ConversationKey } from "./conversations";

/** A draft's content and recipients. */
export interface DraftContent {
  type: "" | "stream" | "private";
  to: number[];
  topic: string;
  content: string;
}

export interface LocalDraft extends DraftContent {
  localId: string;
  /** Last edit, in ms. */
  at: number;
  serverId: number | null;
  /** The server's version as a `shape`; null if never synced. */
  known: string | null;
  /** Times of the versions sent to the server, in seconds, newest last. */
  sent?: readonly number[];
  /** When it was sent or deleted, in ms. */
  gone?: number;
  /** Deleted on the server too. */
  deleted?: boolean;
  /** The newest message of the conversation at the last edit, by which a moved topic is found. */
  near?: number | undefined;
  /** The window that last edited it syncs it while open. */
  window?: string;
}

/** More versions are never in flight at the same time. */
const MOST_SENT = 20;
/** How long a deleted draft is remembered, in ms: events about it may come late. */
const REMEMBERED = 60_000;

/** The draft with its current version recorded as sent. */
export function withSentVersion(draft: LocalDraft): LocalDraft {
  const at = seconds(draft);
  const before = (draft.sent ?? []).filter((other) => other !== at);
  return { ...draft, sent: [...before, at].slice(-MOST_SENT) };
}

/** Time of the last edit as the server stores it. */
export function seconds(draft: LocalDraft): number {
  return Math.floor(draft.at / 1000);
}

/** Find the server's copy of a draft whose creation got no response. */
export function findCreated(
  draft: LocalDraft,
  server: Iterable<ServerDraft>,
): ServerDraft | undefined {
  if (draft.serverId !== null || !draft.sent?.length) return undefined;
  const people = String([...draft.to].sort());
  for (const theirs of server) {
    const isThere =
      theirs.type === draft.type &&
      String([...theirs.to].sort()) === people &&
      theirs.topic === draft.topic.trim();
    if (isThere && draft.sent.includes(theirs.timestamp)) return theirs;
  }
  return undefined;
}

/** The draft as a single text, for comparison. */
export function draftFingerprint({ type, to, topic, content }: DraftContent): string {
  return JSON.stringify([type, to, topic, content]);
}

/** Whether the server doesn't have the current version yet. */
export function isDirty(draft: LocalDraft): boolean {
  return draft.gone === undefined ? draft.known !== draftFingerprint(draft) : !draft.deleted;
}

export function draftContentFor(to: Conversation, content: string): DraftContent {
  return to.kind === "topic"
    ? { type: "stream", to: [to.channelId], topic: to.topic, content }
    : { type: "private", to: to.people, topic: "", content };
}

/** The draft's conversation; null if undecided. */
export function draftConversation(
  draft: Pick<DraftContent, "type" | "to" | "topic"> | ScheduledMessage,
  me: number,
): Conversation | null {
  const to = Array.isArray(draft.to) ? draft.to : [draft.to];
  const [channelId] = to;
  if (draft.type === "stream" && channelId !== undefined) {
    return { kind: "topic", channelId, topic: draft.topic ?? "" };
  }
  return draft.type === "private" && to.length ? { kind: "direct", people: others(to, me) } : null;
}

export function draftKey(draft: DraftContent, me: number): ConversationKey | null {
  const to = draftConversation(draft, me);
  return to && (to.kind === "topic" ? topicKey(to.channelId, to.topic) : keyOf(to));
}

/** The newest draft for a conversation. */
export function draftFor(
  drafts: Iterable<LocalDraft>,
  key: ConversationKey,
  me: number,
): LocalDraft | null {
  let closest: LocalDraft | null = null;
  for (const draft of drafts) {
    if (draftKey(draft, me) === key && (!closest || draft.at > closest.at)) closest = draft;
  }
  return closest;
}

function taken(
  { id, timestamp, type, to, topic, content }: ServerDraft,
  localId: string,
): LocalDraft {
  const draft: DraftContent = { type, to, topic, content };
  const known = draftFingerprint(draft);
  return { ...draft, localId, at: timestamp * 1000, serverId: id, known };
}

/** Merge local drafts with the server's. `name` creates IDs; `wasThere` says whether the server is
 * known to have had a draft, since one that hasn't arrived yet must not be deleted. */
export function mergeDrafts(
  local: Iterable<LocalDraft>,
  server: ReadonlyMap<number, ServerDraft>,
  name: (serverId: number) => string,
  wasThere: (serverId: number) => boolean = () => true,
  now = Date.now(),
): LocalDraft[] {
  const merged: LocalDraft[] = [];
  const seen = new Set<number>();
  const all = [...local];
  for (const { serverId } of all) if (serverId !== null) seen.add(serverId);
  const done = new Set<number>();
  for (let draft of all) {
    if (draft.serverId === null) {
      const rest = [...server.values()].filter((theirs) => !seen.has(theirs.id));
      const mine = findCreated(draft, rest);
      if (!mine) {
        merged.push(draft);
        continue;
      }
      seen.add(mine.id);
      draft = { ...draft, serverId: mine.id };
    }
    const serverId = draft.serverId as number;
    if (done.has(serverId)) continue;
    done.add(serverId);
    const theirs = server.get(serverId);
    if (draft.gone !== undefined) {
      if (theirs || !draft.deleted || now - draft.gone < REMEMBERED) merged.push(draft);
      continue;
    }
    if (!theirs) {
      if (!wasThere(serverId)) merged.push(draft);
      // Deleted elsewhere, but edited here since.
      else if (isDirty(draft)) merged.push({ ...draft, serverId: null, known: null, sent: [] });
      continue;
    }
    if (draft.sent?.includes(theirs.timestamp)) {
      merged.push(draft);
      continue;
    }
    const fresh = taken(theirs, draft.localId);
    if (fresh.known === draft.known || fresh.known === draftFingerprint(draft)) {
      merged.push({ ...draft, known: fresh.known });
    } else if (!isDirty(draft)) {
      merged.push(fresh);
    } else {
      const aside = {
        localId: `${draft.localId}+${now.toString(36)}`,
        serverId: null,
        known: null,
        sent: [],
      };
      if (fresh.at > draft.at) merged.push(fresh, { ...draft, ...aside });
      else merged.push({ ...draft, known: fresh.known }, { ...fresh, ...aside });
    }
  }
  for (const theirs of server.values()) {
    if (!seen.has(theirs.id)) merged.push(taken(theirs, name(theirs.id)));
  }
  return merged;
}
