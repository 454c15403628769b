import { listed, words } from "../words/index.svelte";
import { plainTopic, type Conversation } from "./conversations";
import type { Data } from "./data";

type Users = Data["users"];
type Channels = Data["channels"];

export function userName(users: Users, id: number): string {
  return users.get(id)?.full_name ?? words.common.unknownPerson;
}

/** The topic's display name. Empty topics have one too; resolved topics get an icon instead of the
 * mark. */
export function topicName(topic: string): string {
  return plainTopic(topic) || words.common.noTopic;
}

export function channelName(channels: Channels, id: number): string {
  return channels.get(id)?.name ?? words.common.unknownChannel;
}

/** Participants of a direct conversation. */
export function peopleName(users: Users, people: readonly number[], me: number): string {
  if (people.length === 1 && people[0] === me) return words.common.noteToSelf;
  return listed(people.map((id) => userName(users, id)));
}

/** "#channel > topic", or the participants. */
export function conversationName(
  users: Users,
  channels: Channels,
  conversation: Conversation,
  me: number,
): string {
  return conversation.kind === "topic"
    ? `#${channelName(channels, conversation.channelId)} > ${topicName(conversation.topic)}`
    : peopleName(users, conversation.people, me);
}
