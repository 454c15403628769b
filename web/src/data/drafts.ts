/**
 * Drafts, as they are kept here and on the server. Pure.
 *
 * A draft of one's own machine remembers what the server has of it: what both changed since is a
 * conflict, in which the newer one stays and the other becomes a draft of its own.
 */

import type { Draft as ServerDraft } from "../wire/objects";
import { keyOf, others, topicKey, type Conversation, type ConversationKey } from "./conversations";

/** What is written, and to whom. */
export interface Letter {
  type: "" | "stream" | "private";
  to: number[];
  topic: string;
  content: string;
}

export interface LocalDraft extends Letter {
  localId: string;
  /** When it was written last, in milliseconds. */
  at: number;
  serverId: number | null;
  /** What the server has, as `shape` says it; null: nothing yet. */
  known: string | null;
}

/** Everything of a letter in one text, to compare. */
export function shape({ type, to, topic, content }: Letter): string {
  return JSON.stringify([type, to, topic, content]);
}

export function isDirty(draft: LocalDraft): boolean {
  return draft.known !== shape(draft);
}

export function letterTo(to: Conversation, content: string): Letter {
  return to.kind === "topic"
    ? { type: "stream", to: [to.channelId], topic: to.topic, content }
    : { type: "private", to: to.people, topic: "", content };
}

/** To which conversation a letter goes; null while that is not decided. */
export function destination(letter: Letter, me: number): Conversation | null {
  const [channelId] = letter.to;
  if (letter.type === "stream" && channelId !== undefined) {
    return { kind: "topic", channelId, topic: letter.topic };
  }
  if (letter.type === "private" && letter.to.length) {
    return { kind: "direct", people: others(letter.to, me) };
  }
  return null;
}

export function draftKey(letter: Letter, me: number): ConversationKey | null {
  const to = destination(letter, me);
  return to && (to.kind === "topic" ? topicKey(to.channelId, to.topic) : keyOf(to));
}

/** The newest draft for a conversation. */
export function draftFor(
  drafts: Iterable<LocalDraft>,
  key: ConversationKey,
  me: number,
): LocalDraft | null {
  let found: LocalDraft | null = null;
  for (const draft of drafts) {
    if (draftKey(draft, me) === key && (!found || draft.at > found.at)) found = draft;
  }
  return found;
}

function taken(draft: ServerDraft, localId: string): LocalDraft {
  const letter: Letter = {
    type: draft.type,
    to: draft.to,
    topic: draft.topic,
    content: draft.content,
  };
  return {
    ...letter,
    localId,
    at: draft.timestamp * 1000,
    serverId: draft.id,
    known: shape(letter),
  };
}

/** What one has after looking at what the server has. `name` makes IDs for new ones. */
export function reconciled(
  local: Iterable<LocalDraft>,
  server: ReadonlyMap<number, ServerDraft>,
  name: (serverId: number) => string,
): LocalDraft[] {
  const found: LocalDraft[] = [];
  const seen = new Set<number>();
  for (const draft of local) {
    if (draft.serverId === null) {
      found.push(draft);
      continue;
    }
    if (seen.has(draft.serverId)) continue;
    seen.add(draft.serverId);
    const theirs = server.get(draft.serverId);
    if (!theirs) {
      // Deleted elsewhere: unless more was written here since.
      if (isDirty(draft)) found.push({ ...draft, serverId: null, known: null });
      continue;
    }
    const fresh = taken(theirs, draft.localId);
    if (fresh.known === draft.known || fresh.known === shape(draft)) {
      found.push({ ...draft, known: fresh.known });
    } else if (!isDirty(draft)) {
      found.push(fresh);
    } else if (fresh.at > draft.at) {
      found.push(fresh, { ...draft, localId: `${draft.localId}+`, serverId: null, known: null });
    } else {
      const other = `${draft.localId}+`;
      found.push({ ...draft, known: fresh.known });
      found.push({ ...fresh, localId: other, serverId: null, known: null });
    }
  }
  for (const theirs of server.values()) {
    if (!seen.has(theirs.id)) found.push(taken(theirs, name(theirs.id)));
  }
  return found;
}
