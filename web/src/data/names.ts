import { inOrder, listed, words } from "../words/index.svelte";
import { withoutResolved, type Conversation, type Narrow, type Term } from "./conversations";
import type { Data } from "./data";

type Users = Data["users"];
type Channels = Data["channels"];

export function userName(users: Users, id: number): string {
  return users.get(id)?.full_name ?? words.common.unknownPerson;
}

/** The topic's display name. Empty topics have one too; resolved topics get an icon instead of the
 * mark. */
export function topicName(topic: string): string {
  return withoutResolved(topic) || words.common.noTopic;
}

export function channelName(channels: Channels, id: number): string {
  return channels.get(id)?.name ?? words.common.unknownChannel;
}

/** Participants of a direct conversation: `most` of them, and how many others. */
export function peopleName(
  users: Users,
  people: readonly number[],
  me: number,
  limit = people.length,
): string {
  if (people.length === 1 && people[0] === me) return words.common.noteToSelf;
  const names = people.slice(0, limit).map((id) => userName(users, id));
  const others = people.length - names.length;
  if (others > 0) names.push(words.messages.others({ count: others }));
  return listed(names);
}

/** "#channel > topic", or the participants. */
export function conversationName(
  users: Users,
  channels: Channels,
  conversation: Conversation,
  me: number,
): string {
  if (conversation.kind === "direct") return peopleName(users, conversation.people, me);
  const names = [channelName(channels, conversation.channelId), topicName(conversation.topic)];
  return inOrder(names, ([channel, topic]) => `#${channel} > ${topic}`);
}

type Known = Pick<Data, "users" | "channels" | "me">;

const isAlone = (narrow: Narrow, operand: string) =>
  narrow.length === 1 &&
  narrow[0]?.operator === "is" &&
  narrow[0].operand === operand &&
  !narrow[0].negated;

export function narrowTitle(narrow: Narrow, known: Known): string {
  const { head } = words.messages;
  if (!narrow.length) return words.shell.feed;
  const alone: [string, string][] = [
    ["mentioned", words.shell.mentions],
    ["starred", words.shell.starred],
    ["dm", head.directs],
    ["private", head.directs],
    ["unread", head.unreadOnly],
    ["alerted", head.alerted],
    ["resolved", head.resolvedTopics],
    ["followed", head.followedTopics],
  ];
  for (const [operand, title] of alone) if (isAlone(narrow, operand)) return title;
  const terms = narrow.map((term) => termName(term, known));
  return head.search({ terms: inOrder(terms, (apart) => apart.join(", ")) });
}

/** A search term in words. */
export function termName(term: Term, known: Known): string {
  const text = plainText(term, known);
  return term.negated ? words.messages.head.not({ term: text }) : text;
}

function plainText({ operator, operand }: Term, { users, channels, me }: Known): string {
  const { head } = words.messages;
  const person = (id: Term["operand"]) =>
    typeof id === "number" ? userName(users, id) : String(id);
  switch (operator) {
    case "channel":
      return typeof operand === "number" ? `#${channelName(channels, operand)}` : `#${operand}`;
    case "channels":
      return operand === "public" ? head.publicChannels : String(operand);
    case "topic":
      return topicName(String(operand));
    case "sender":
      return head.from({ name: person(operand) });
    case "mentions":
      return head.mentioning({ name: person(operand) });
    case "dm":
    case "dm-including":
      return head.including({
        names: Array.isArray(operand) ? peopleName(users, operand, me) : person(operand),
      });
    case "search":
      return head.quoted({ text: String(operand) });
    case "has": {
      const named: Record<string, string> = {
        link: head.hasLink,
        image: head.hasImage,
        attachment: head.hasAttachment,
        reaction: head.hasReaction,
      };
      return named[String(operand)] ?? String(operand);
    }
    case "is":
      return (
        (head.is as Record<string, string>)[String(operand)] ?? `${operator}:${String(operand)}`
      );
    default:
      return `${operator}:${String(operand)}`;
  }
}
