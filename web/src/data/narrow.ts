/** Narrows: which messages a view shows, its URL, and whether a message matches. */

import { keyOf, others, type Conversation, type Narrow, type Term } from "./conversations";
import { peopleOf, type Data, type Message } from "./data";
import { decoded, encoded } from "./fragments";

/** A unique name for a narrow and its list. */
export function nameOf(narrow: Narrow): string {
  return JSON.stringify(narrow.map((term) => [term.negated ?? false, term.operator, term.operand]));
}

export const ALL: Narrow = [];

export function narrowOf(conversation: Conversation): Narrow {
  return conversation.kind === "topic"
    ? [
        { operator: "channel", operand: conversation.channelId },
        { operator: "topic", operand: conversation.topic },
      ]
    : [{ operator: "dm", operand: conversation.people }];
}

export function channelNarrow(channelId: number): Narrow {
  return [{ operator: "channel", operand: channelId }];
}

function plain(narrow: Narrow, operator: string): Term | undefined {
  return narrow.find((term) => term.operator === operator && !term.negated);
}

/** The conversation that a narrow shows, if it's exactly one. */
export function conversationIn(narrow: Narrow): Conversation | null {
  const channel = plain(narrow, "channel");
  const topic = plain(narrow, "topic");
  if (typeof channel?.operand === "number" && topic) {
    return { kind: "topic", channelId: channel.operand, topic: String(topic.operand) };
  }
  const direct = plain(narrow, "dm");
  return Array.isArray(direct?.operand) ? { kind: "direct", people: direct.operand } : null;
}

export function channelIn(narrow: Narrow): number | null {
  const operand = plain(narrow, "channel")?.operand;
  return typeof operand === "number" ? operand : null;
}

/** Whether it shows a whole channel or topic. */
export function isOfChannel(narrow: Narrow): boolean {
  return (
    channelIn(narrow) !== null &&
    narrow.every((term) => term.operator === "channel" || term.operator === "topic")
  );
}

/** Whether a term depends on the user's own data: received, starred, muted, or unread messages. */
export function dependsOnUser({ operator, operand }: Term): boolean {
  return /^(dm|dm-including|in)$/.test(operator) || (operator === "is" && operand !== "resolved");
}

/** Whether a narrow shows complete conversations, so that messages can be marked as read. */
export function showsConversations(narrow: Narrow): boolean {
  return narrow.every(
    (term) =>
      !term.negated &&
      (term.operator === "channel" || term.operator === "topic" || term.operator === "dm"),
  );
}

/** Whether a message matches; undefined if only the server knows. */
export function matches(narrow: Narrow, message: Message, data: Data): boolean | undefined {
  let known = true;
  for (const term of narrow) {
    const isMatch = matchesTerm(term, message, data);
    if (isMatch === undefined) known = false;
    else if (isMatch === (term.negated ?? false)) return false;
  }
  return known ? true : undefined;
}

function matchesTerm(term: Term, message: Message, data: Data): boolean | undefined {
  const isDirect = message.type === "private";
  switch (term.operator) {
    case "channel":
      return message.stream_id === term.operand;
    case "topic":
      return !isDirect && message.subject.toLowerCase() === String(term.operand).toLowerCase();
    case "dm":
      return (
        Array.isArray(term.operand) &&
        message.key === keyOf({ kind: "direct", people: others(term.operand, data.me) })
      );
    case "dm-including": {
      if (!isDirect || !Array.isArray(term.operand)) return isDirect ? undefined : false;
      const people = peopleOf(message);
      return term.operand.every((id) => people.includes(id));
    }
    case "sender":
      return typeof term.operand === "number" ? message.sender_id === term.operand : undefined;
    case "id":
      return message.id === Number(term.operand);
    case "is":
      return matchesIs(String(term.operand), message, data);
    case "channels":
      return term.operand === "public" || term.operand === "web-public"
        ? !isDirect && undefined
        : undefined;
    default:
      return undefined;
  }
}

function matchesIs(operand: string, message: Message, data: Data): boolean | undefined {
  switch (operand) {
    case "dm":
    case "private":
      return message.type === "private";
    case "starred":
      return message.flags.includes("starred");
    case "unread":
      return !message.flags.includes("read");
    case "mentioned":
      return [
        "mentioned",
        "stream_wildcard_mentioned",
        "topic_wildcard_mentioned",
        "wildcard_mentioned",
      ].some((flag) => message.flags.includes(flag));
    case "alerted":
      return message.flags.includes("has_alert_word");
    case "resolved":
      return message.type === "stream" && message.subject.startsWith("✔ ");
    case "followed":
      return data.topicPolicies.get(message.key)?.visibility_policy === 3;
    default:
      return undefined;
  }
}

// URLs

export type Named = Pick<Data, "channels" | "users">;

/** The fragment of a narrow, without `#`, at the message `near`. */
export function fragmentOf(narrow: Narrow, data: Named, near?: number): string {
  const parts = narrow.flatMap((term) => [
    (term.negated ? "-" : "") + term.operator,
    operandText(term, data),
  ]);
  if (near !== undefined) parts.push("near", String(near));
  return ["narrow", ...parts].join("/");
}

function operandText(term: Term, data: Named): string {
  if (term.operator === "channel" && typeof term.operand === "number") {
    const name = data.channels.get(term.operand)?.name.replace(/ /g, "-");
    return name ? encoded(`${term.operand}-${name}`) : String(term.operand);
  }
  if (Array.isArray(term.operand)) {
    const [only] = term.operand;
    const name =
      term.operand.length === 1 && only !== undefined
        ? (data.users.get(only)?.full_name.replace(/[ %/<>`\p{C}]+/gu, "-") ?? "dm")
        : "group";
    return encoded(`${term.operand.join(",")}-${name}`);
  }
  return encoded(String(term.operand));
}

const LEGACY: Record<string, string> = {
  stream: "channel",
  subject: "topic",
  "pm-with": "dm",
  streams: "channels",
  "group-pm-with": "dm-including",
};

export interface Place {
  narrow: Narrow;
  near?: number;
}

/** Parse a fragment that begins with `narrow`; null if it's invalid. */
export function placeIn(fragment: string, data: Data): Place | null {
  const parts = fragment.split("/");
  if (parts.shift() !== "narrow") return null;
  const narrow: Term[] = [];
  let near: number | undefined;
  for (let at = 0; at + 1 < parts.length || at < parts.length; at += 2) {
    const name = decoded(parts[at] ?? "");
    const text = decoded(parts[at + 1] ?? "");
    const negated = name.startsWith("-");
    const bare = negated ? name.slice(1) : name;
    const operator = LEGACY[bare] ?? bare;
    if (operator === "near" || operator === "with") {
      near = Number(text) || undefined;
      continue;
    }
    const operand = operandOf(operator, text, data);
    if (operand === null) return null;
    narrow.push(negated ? { operator, operand, negated } : { operator, operand });
  }
  return near === undefined ? { narrow } : { narrow, near };
}

/** Parse an operand. */
export function operandOf(operator: string, text: string, data: Data): Term["operand"] | null {
  if (operator === "channel") {
    const id = /^(\d+)(?:-|$)/.exec(text)?.[1];
    if (id && data.channels.has(Number(id))) return Number(id);
    for (const channel of data.channels.values()) {
      if (channel.name.toLowerCase() === text.toLowerCase()) return channel.stream_id;
    }
    return id ? Number(id) : null;
  }
  if (operator === "dm" || operator === "dm-including") {
    const ids = /^(\d+(?:,\d+)*)(?:-|$)/.exec(text)?.[1];
    if (ids)
      return operator === "dm"
        ? others(ids.split(",").map(Number), data.me)
        : ids.split(",").map(Number);
    const users = text.split(",").map((name) => userWith(name.trim(), data));
    return users.every((id) => id !== null) ? others(users as number[], data.me) : null;
  }
  if (operator === "sender") {
    const id = /^(\d+)(?:-|$)/.exec(text)?.[1];
    return id ? Number(id) : text === "me" ? data.me : (userWith(text, data) ?? text);
  }
  return text;
}

function userWith(address: string, data: Data): number | null {
  const needle = address.toLowerCase();
  for (const user of data.users.values()) {
    if (user.email.toLowerCase() === needle || user.delivery_email?.toLowerCase() === needle) {
      return user.user_id;
    }
  }
  return null;
}
