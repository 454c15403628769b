import type { ServerEvent } from "../wire/events";

/** A condition on messages, such as `channel:general`. */
export interface Term {
  operator: string;
  /** IDs for channels and people, text otherwise. */
  operand: string | number | number[];
  negated?: boolean;
}

/** The messages of a view: those that match all terms. */
export type Narrow = readonly Term[];

/** `c7/topic` in lowercase, or `d3,5` with the other people's IDs; with only your own ID for notes
 * to yourself. */
export type ConversationKey = string;

export interface TopicOf {
  kind: "topic";
  channelId: number;
  topic: string;
}

interface DirectWith {
  kind: "direct";
  /** Everyone else, in order; the user alone for notes to themselves. */
  people: number[];
}

export type Conversation = TopicOf | DirectWith;

export function topicKey(channelId: number, topic: string): ConversationKey {
  return `c${channelId}/${topic.toLowerCase()}`;
}

/** Key of a direct conversation. The user may be among `people` or not. */
export function directKey(people: Iterable<number>, me: number): ConversationKey {
  return `d${others(people, me).join(",")}`;
}

export function others(people: Iterable<number>, me: number): number[] {
  const rest = [...new Set(people)].filter((id) => id !== me).sort((a, b) => a - b);
  return rest.length ? rest : [me];
}

export function keyOf(conversation: Conversation): ConversationKey {
  return conversation.kind === "topic"
    ? topicKey(conversation.channelId, conversation.topic)
    : `d${conversation.people.join(",")}`;
}

/** The conversation of a key. `names` has the spelling of topics; otherwise it stays in
 * lowercase. */
export function conversationOf(
  key: ConversationKey,
  names?: ReadonlyMap<ConversationKey, string>,
): Conversation {
  if (key.startsWith("d")) {
    return { kind: "direct", people: key.slice(1).split(",").map(Number) };
  }
  const slash = key.indexOf("/");
  return {
    kind: "topic",
    channelId: Number(key.slice(1, slash)),
    topic: names?.get(key) ?? key.slice(slash + 1),
  };
}

export function channelOfKey(key: ConversationKey): number | null {
  return key.startsWith("c") ? Number(key.slice(1, key.indexOf("/"))) : null;
}

const RESOLVED = "✔ ";

export function isResolved(topic: string): boolean {
  return topic.startsWith(RESOLVED);
}

/** A topic's name without the resolved mark. */
export function withoutResolved(topic: string): string {
  return topic.replace(/^(✔ )+/, "");
}

export function withResolved(topic: string, resolved: boolean): string {
  return resolved ? RESOLVED + withoutResolved(topic) : withoutResolved(topic);
}

interface Move {
  from: ConversationKey;
  to: TopicOf;
}

/** Where an event moves its messages; null for other events. */
export function moveTarget(event: ServerEvent): TopicOf | null {
  if (event.type !== "update_message" || !("propagate_mode" in event)) return null;
  return {
    kind: "topic",
    channelId: (event["new_stream_id"] ?? event["stream_id"]) as number,
    topic: String(event["subject"] ?? event["orig_subject"] ?? ""),
  };
}

/** Source and target if an event moves a whole topic; null otherwise. */
export function wholeMove(event: ServerEvent): Move | null {
  const to = event["propagate_mode"] === "change_all" ? moveTarget(event) : null;
  if (!to) return null;
  return { from: topicKey(event["stream_id"] as number, String(event["orig_subject"])), to };
}
