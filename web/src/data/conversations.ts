/** A conversation is a topic of a channel, or the direct messages of the same people. */

/** `c7/topic` in small letters, or `d3,5` with everybody else's IDs; with oneself alone one's own. */
export type ConversationKey = string;

export interface TopicOf {
  kind: "topic";
  channelId: number;
  topic: string;
}

export interface DirectWith {
  kind: "direct";
  /** Everybody but oneself, in order; oneself when alone. */
  people: number[];
}

export type Conversation = TopicOf | DirectWith;

export function topicKey(channelId: number, topic: string): ConversationKey {
  return `c${channelId}/${topic.toLowerCase()}`;
}

/** Of all who take part; one may be among them or not. */
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

/** The conversation of a key; its topic as `names` has it written, or else in small letters. */
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

export const RESOLVED = "✔ ";

export function isResolved(topic: string): boolean {
  return topic.startsWith(RESOLVED);
}

/** A topic's name without the mark of being resolved. */
export function plainTopic(topic: string): string {
  return topic.replace(/^(✔ )+/, "");
}

/** What a topic is called when it is resolved, or when it is not. */
export function withResolved(topic: string, resolved: boolean): string {
  return resolved ? RESOLVED + plainTopic(topic) : plainTopic(topic);
}
