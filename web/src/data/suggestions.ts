/** Suggestions of the search box: places, searches, and completions. */

import {
  conversationOf,
  isResolved,
  keyOf,
  topicKey,
  type ConversationKey,
  type Narrow,
} from "./conversations";
import type { Data } from "./data";
import { channelName, peopleName, topicName } from "./names";
import { channelIn, channelNarrow, conversationIn, fragmentOf, narrowOf, placeIn } from "./narrow";
import { normalized, topItems } from "./matching";
import { BY_NAME, matchesPerson } from "./people";
import {
  parseSearch,
  choicesFor,
  withLastTerm,
  lastPart,
  operatorsFor,
  type Operator,
} from "./search";
import { personText } from "./searchText";

/** A place; `lately` marks a recently visited one. */
type Place = { name: string; fragment: string; lately?: true } & (
  | { kind: "channel"; id: number }
  | { kind: "topic"; channelId: number; resolved: boolean }
  | { kind: "person"; id: number }
  /** Other named targets. */
  | { kind: "view" }
);

export type Suggestion =
  | Place
  | { kind: "setting"; name: string; where: string; fragment: string }
  | { kind: "command"; name: string; run: () => unknown }
  | {
      kind: "search";
      text: string;
      fragment: string;
      /** Where to begin. */
      start?: { narrow: Narrow; day: string };
    }
  /** A completion of the typed text. */
  | { kind: "term"; text: string; operator: Operator; operand: string; negated: boolean };

type SuggestionState = Data;

export interface View {
  name: string;
  fragment: string;
}

const LIMITS = {
  channel: 6,
  topic: 8,
  person: 6,
  view: 4,
  command: 4,
  operand: 8,
} as const;

/** Rank of a match within a word. */
export const RANK_WITHIN = 3;

/** How well a name matches: 0 is best; null: not at all. */
export function nameRank(name: string, needle: string): number | null {
  const plain = normalized(name);
  if (plain === needle) return 0;
  if (plain.startsWith(needle)) return 1;
  const words = needle.split(/\s+/);
  const pieces = plain.split(/[\s\-_/.:]+/);
  if (words.every((word) => pieces.some((part) => part.startsWith(word)))) return 2;
  return plain.includes(needle) ? RANK_WITHIN : null;
}

function best<T>(
  items: Iterable<T>,
  needle: string,
  name: (item: T) => string,
  limit: number,
  amongEquals: (a: T, b: T) => number = () => 0,
): T[] {
  const ranked: [T, number][] = [];
  for (const item of items) {
    const at = needle ? nameRank(name(item), needle) : 0;
    if (at !== null) ranked.push([item, at]);
  }
  return topItems(ranked, limit, (a, b) => a[1] - b[1] || amongEquals(a[0], b[0])).map(
    ([item]) => item,
  );
}

/** Commands whose names match, best first. */
export function commandSuggestions(
  all: readonly { name: string; run: () => unknown }[],
  text: string,
): Suggestion[] {
  const needle = normalized(text.trim());
  if (!needle) return [];
  return best(all, needle, (command) => command.name, LIMITS.command).map((command) => ({
    kind: "command",
    ...command,
  }));
}

/** Places whose names match; recently visited ones (`lately`, fragments) first among equals. */
export function placeSuggestions(
  data: SuggestionState,
  text: string,
  views: readonly View[],
  only?: "people",
  recent: readonly string[] = [],
): Place[] {
  const needle = normalized(text.trim().replace(/^[#@]/, ""));
  // Visitors can't write to anyone.
  const people = data.me ? peopleIn(data, needle) : [];
  if (only === "people" || text.startsWith("@")) return people;
  const unarchived = [...data.channels.values()].filter((channel) => !channel.is_archived);
  const seen = recentConversations(data, recent);
  const mine = (channel: (typeof unarchived)[number]) =>
    Number(!channel.subscription) * 2 + Number(!seen.channels.has(channel.stream_id));
  const channels = best(
    unarchived,
    needle,
    (channel) => channel.name,
    LIMITS.channel,
    (a, b) => mine(a) - mine(b) || BY_NAME.compare(a.name, b.name),
  ).map((channel) => ({
    kind: "channel" as const,
    id: channel.stream_id,
    name: channel.name,
    fragment: fragmentOf(channelNarrow(channel.stream_id), data),
  }));
  if (text.startsWith("#")) return channels;
  const matches = best(views, needle, (view) => view.name, LIMITS.view).map((view) => ({
    kind: "view" as const,
    ...view,
  }));
  if (!needle) return [...matches, ...channels, ...people];
  return [...matches, ...channels, ...topicsIn(data, needle, seen.topics), ...people];
}

/** Recently visited places without `here`, each once, even if renamed. `named` returns the names of
 * other views; null if one no longer exists. */
export function recentPlaces(
  data: SuggestionState,
  recent: readonly string[],
  current: string,
  named: (fragment: string) => string | null,
): Place[] {
  const seen = new Set([placeKey(placeAt(data, current, named))]);
  const places: Place[] = [];
  for (const fragment of recent) {
    const place = placeAt(data, fragment, named);
    if (!place || seen.has(placeKey(place))) continue;
    seen.add(placeKey(place));
    places.push({ ...place, lately: true });
  }
  return places;
}

/** A topic keeps its key when it's resolved. */
function placeKey(place: Place | null): string | undefined {
  return place?.kind === "topic" ? topicKey(place.channelId, place.name) : place?.fragment;
}

function placeAt(
  data: SuggestionState,
  fragment: string,
  named: (fragment: string) => string | null,
): Place | null {
  const narrow = placeIn(fragment, data)?.narrow;
  // Use current names, without a message ID.
  const address = narrow ? fragmentOf(narrow, data) : fragment;
  const name = named(address);
  if (name === null) return null;
  return {
    ...((narrow && ownPlace(data, narrow)) ?? { kind: "view", name }),
    fragment: address,
  };
}

/** The channel or conversation of a narrow. */
function ownPlace(data: SuggestionState, narrow: Narrow) {
  const conversation = conversationIn(narrow);
  if (conversation?.kind === "topic" && narrow.length === 2) {
    const { channelId, topic } = conversation;
    return {
      kind: "topic" as const,
      channelId,
      name: topicName(topic),
      resolved: isResolved(topic),
    };
  }
  const [first] = narrow;
  if (narrow.length !== 1 || !first || first.negated) return undefined;
  if (conversation?.kind === "direct" && conversation.people.length === 1) {
    const id = conversation.people[0] ?? data.me;
    return { kind: "person" as const, id, name: peopleName(data.users, [id], data.me) };
  }
  const channelId = channelIn(narrow);
  return channelId === null
    ? undefined
    : { kind: "channel" as const, id: channelId, name: channelName(data.channels, channelId) };
}

/** Number of suggestions per kind that come before commands and settings. */
const AT_FIRST: Partial<Record<Suggestion["kind"], number>> = {
  view: 2,
  channel: 3,
  topic: 3,
  person: 3,
};

/** Split the matches into a few good ones per kind and the rest. */
export function splitPlaces(
  suggestions: readonly Suggestion[],
  text: string,
): [Suggestion[], Suggestion[]] {
  const needle = normalized(text.trim().replace(/^[#@]/, ""));
  const taken = new Map<string, number>();
  const first: Suggestion[] = [];
  const rest: Suggestion[] = [];
  for (const suggestion of suggestions) {
    const count = taken.get(suggestion.kind) ?? 0;
    const fits = !("name" in suggestion) || (nameRank(suggestion.name, needle) ?? 0) < RANK_WITHIN;
    const isFirst = fits && count < (AT_FIRST[suggestion.kind] ?? 0);
    if (isFirst) taken.set(suggestion.kind, count + 1);
    (isFirst ? first : rest).push(suggestion);
  }
  return [first, rest];
}

function recentConversations(data: SuggestionState, recent: readonly string[]) {
  const channels = new Set<number>();
  const topics = new Set<ConversationKey>();
  for (const fragment of recent) {
    const narrow = placeIn(fragment, data)?.narrow ?? [];
    const channelId = channelIn(narrow);
    const conversation = conversationIn(narrow);
    if (channelId !== null) channels.add(channelId);
    if (conversation) topics.add(keyOf(conversation));
  }
  return { channels, topics };
}

function topicsIn(
  data: SuggestionState,
  needle: string,
  recent: ReadonlySet<ConversationKey>,
): Place[] {
  const newest = [...data.topicNames].reverse();
  const known = [
    ...newest.filter(([key]) => recent.has(key)),
    ...newest.filter(([key]) => !recent.has(key)),
  ];
  return best(
    known,
    needle,
    ([key, name]) => {
      const conversation = conversationOf(key);
      const channel =
        conversation.kind === "topic" ? channelName(data.channels, conversation.channelId) : "";
      // "general hello" finds the topic "hello" in general.
      return needle.includes(" ") ? `${name} ${channel}` : name;
    },
    LIMITS.topic,
  ).flatMap(([key, name]) => {
    const conversation = conversationOf(key, data.topicNames);
    if (conversation.kind !== "topic" || !data.channels.has(conversation.channelId)) return [];
    const fragment = fragmentOf(narrowOf(conversation), data);
    const { channelId } = conversation;
    return [
      {
        kind: "topic" as const,
        channelId,
        name: topicName(name),
        resolved: isResolved(name),
        fragment,
      },
    ];
  });
}

function peopleIn(data: SuggestionState, needle: string): (Place & { kind: "person" })[] {
  const ranked = [];
  for (const user of data.users.values()) {
    if (user.is_active === false || (needle && !matchesPerson(user, needle))) continue;
    ranked.push({ user, latest: data.directs.get(`d${user.user_id}`) ?? 0 });
  }
  return topItems(
    ranked,
    needle ? LIMITS.person : 4,
    (a, b) =>
      Number(a.user.is_bot) - Number(b.user.is_bot) ||
      b.latest - a.latest ||
      BY_NAME.compare(a.user.full_name, b.user.full_name),
  ).map(({ user }) => ({
    kind: "person" as const,
    id: user.user_id,
    name: user.full_name,
    fragment: fragmentOf([{ operator: "dm", operand: [user.user_id] }], data),
  }));
}

/** Completions of the last word: operators, or operands of the current one. */
export function termSuggestions(data: SuggestionState, text: string): Suggestion[] {
  const { part } = lastPart(text);
  if (part?.operator) return operands(data, text, part.operator, part.operand, part.negated);
  const typed = (part?.text ?? "").replace(/^-/, "").toLowerCase();
  const negated = part?.text.startsWith("-") ?? false;
  if (!text.trim() || !part) return [];
  const words = operatorsFor(data).filter(
    (operator) => operator.startsWith(typed) && !negatedWrong(operator),
  );
  const choices = (["is", "has"] as const).flatMap((operator) =>
    (choicesFor(data, operator) ?? [])
      .filter((choice) => choice.startsWith(typed))
      .map((operand) => ({ operator, operand })),
  );
  return [...words.map((operator) => ({ operator, operand: "" })), ...choices]
    .slice(0, 5)
    .map(({ operator, operand }) => ({
      kind: "term",
      text: withLastTerm(text, operator, operand),
      operator,
      operand,
      negated,
    }));

  function negatedWrong(operator: Operator): boolean {
    return negated && ["after", "near", "in"].includes(operator);
  }
}

/** All operators, for an empty box. */
export function operatorSuggestions(data: SuggestionState): Suggestion[] {
  return operatorsFor(data).map((operator) => ({
    kind: "term",
    text: `${operator}:`,
    operator,
    operand: "",
    negated: false,
  }));
}

function operands(
  data: SuggestionState,
  text: string,
  operator: Operator,
  typed: string,
  negated: boolean,
): Suggestion[] {
  const needle = normalized(typed);
  const term = (operand: string): Suggestion => ({
    kind: "term",
    text: withLastTerm(text, operator, operand),
    operator,
    operand,
    negated,
  });
  const choices = choicesFor(data, operator);
  if (choices) return choices.filter((choice) => choice.startsWith(needle)).map(term);
  switch (operator) {
    case "channel":
      return best(data.channels.values(), needle, (channel) => channel.name, LIMITS.operand).map(
        (channel) =>
          term(/^\d+(-|$)/.test(channel.name) ? String(channel.stream_id) : channel.name),
      );
    case "topic": {
      const { narrow } = parseSearch(lastPart(text).before, data);
      const channelId = narrow.find((term) => term.operator === "channel")?.operand;
      const names = [...data.topicNames]
        .filter(([key]) => channelId === undefined || key.startsWith(`c${String(channelId)}/`))
        .map(([, name]) => name)
        .reverse();
      return best(new Set(names), needle, (name) => name, LIMITS.operand).map(term);
    }
    case "dm":
    case "dm-including":
    case "sender":
    case "mentions": {
      const before = operator.startsWith("dm") ? typed.slice(0, typed.lastIndexOf(",") + 1) : "";
      const last = normalized(typed.slice(before.length).trim());
      const ids = peopleIn(data, last).map((person) => person.id);
      const known = operator === "sender" || operator === "mentions";
      const me = known && !typed && data.me ? ["me"] : [];
      return [...me, ...ids.map((id) => before + personText(id, data))].map(term);
    }
    default:
      return [];
  }
}

/** The search for the text; null if it's empty or partly unclear. */
export function searchFor(data: SuggestionState, text: string): Suggestion | null {
  const { narrow, near, after, unclear } = parseSearch(text, data);
  if (!narrow.length || unclear.length) return null;
  const found = { text: text.trim(), fragment: fragmentOf(narrow, data, near) };
  if (after === undefined) return { kind: "search", ...found };
  return { kind: "search", ...found, start: { narrow, day: after } };
}
