/**
 * Drafts, as they are kept here and on the server. Pure.
 *
 * A draft of one's own machine remembers what the server has of it, and which versions it sent
 * there: those are no news when they are heard of, however late and in whatever form the server
 * keeps them. What both sides changed since is a conflict, in which the newer one stays and the
 * other becomes a draft of its own. One that was sent or thrown away is remembered as gone until
 * the server has no more of it, so that nothing brings it back.
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
  /** When the versions were written that were sent to the server, in seconds, latest last. */
  sent?: readonly number[];
  /** When it was sent as a message or thrown away, in milliseconds. */
  gone?: number;
  /** It is gone from the server too. */
  deleted?: boolean;
  /** The window that wrote it last: that one brings it to the server while it is open. */
  window?: string;
}

/** So many versions are remembered: more are never under way at once. */
const MOST_SENT = 20;
/** How long one that is gone is remembered after the server has no more of it: what is told of it
 * may come late. In milliseconds. */
const REMEMBERED = 60_000;

/** The draft, with its present version among those that were sent. */
export function asSent(draft: LocalDraft): LocalDraft {
  const at = seconds(draft);
  const before = (draft.sent ?? []).filter((other) => other !== at);
  return { ...draft, sent: [...before, at].slice(-MOST_SENT) };
}

/** When it was written last, as the server keeps it. */
export function seconds(draft: LocalDraft): number {
  return Math.floor(draft.at / 1000);
}

/** Which of the server's drafts is this one, whose creation was not answered. */
export function createdAs(
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

/** Everything of a letter in one text, to compare. */
export function shape({ type, to, topic, content }: Letter): string {
  return JSON.stringify([type, to, topic, content]);
}

/** Whether the server does not know yet what became of it. */
export function isDirty(draft: LocalDraft): boolean {
  return draft.gone === undefined ? draft.known !== shape(draft) : !draft.deleted;
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

/**
 * What one has after looking at what the server has. `name` makes IDs for new ones; `wasThere` says
 * whether the server is known to have had a draft: one that was not heard of yet is not deleted.
 */
export function reconciled(
  local: Iterable<LocalDraft>,
  server: ReadonlyMap<number, ServerDraft>,
  name: (serverId: number) => string,
  wasThere: (serverId: number) => boolean = () => true,
  now = Date.now(),
): LocalDraft[] {
  const found: LocalDraft[] = [];
  const seen = new Set<number>();
  const all = [...local];
  for (const { serverId } of all) if (serverId !== null) seen.add(serverId);
  const done = new Set<number>();
  for (let draft of all) {
    if (draft.serverId === null) {
      const rest = [...server.values()].filter((theirs) => !seen.has(theirs.id));
      const mine = createdAs(draft, rest);
      if (!mine) {
        found.push(draft);
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
      if (theirs || !draft.deleted || now - draft.gone < REMEMBERED) found.push(draft);
      continue;
    }
    if (!theirs) {
      if (!wasThere(serverId)) found.push(draft);
      // Deleted elsewhere: unless more was written here since.
      else if (isDirty(draft)) found.push({ ...draft, serverId: null, known: null, sent: [] });
      continue;
    }
    if (draft.sent?.includes(theirs.timestamp)) {
      found.push(draft);
      continue;
    }
    const fresh = taken(theirs, draft.localId);
    if (fresh.known === draft.known || fresh.known === shape(draft)) {
      found.push({ ...draft, known: fresh.known });
    } else if (!isDirty(draft)) {
      found.push(fresh);
    } else {
      const aside = {
        localId: `${draft.localId}+${now.toString(36)}`,
        serverId: null,
        known: null,
        sent: [],
      };
      if (fresh.at > draft.at) found.push(fresh, { ...draft, ...aside });
      else found.push({ ...draft, known: fresh.known }, { ...fresh, ...aside });
    }
  }
  for (const theirs of server.values()) {
    if (!seen.has(theirs.id)) found.push(taken(theirs, name(theirs.id)));
  }
  return found;
}
