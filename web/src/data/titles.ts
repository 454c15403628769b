/** Titles of views that show messages. */

import { words } from "../words/index.svelte";
import type { Data } from "./data";
import { channelName, peopleName, topicName, userName } from "./names";
import type { Narrow, Term } from "./narrow";

type Known = Pick<Data, "users" | "channels" | "me">;

const isAlone = (narrow: Narrow, operand: string) =>
  narrow.length === 1 &&
  narrow[0]?.operator === "is" &&
  narrow[0].operand === operand &&
  !narrow[0].negated;

export function titleOf(narrow: Narrow, known: Known): string {
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
  return head.search({ terms: narrow.map((term) => termName(term, known)).join(", ") });
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
