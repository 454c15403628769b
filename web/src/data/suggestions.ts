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
  personText,
  type Operator,
} from "./search";

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
  | { kind: "search"; text: string; fragment: string }
  /** A completion of the typed text. */
  | { kind: "term"; text: string; operator: Operator; operand: string; negated: boolean };

type SuggestionState = Data;

export interface View {
  name: string;
  fragment: string;
}

const MOST = {
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
  const parts = plain.split(/[\s\-_/.:]+/);
  if (words.every((word) => parts.some((part) => part.startsWith(word)))) return 2;
  return plain.includes(needle) ? RANK_WITHIN : null;
}

function best<T>(items: Iterable<T>, needle: string, name: (item: T) => string, most: number): T[] {
  const found: [T, number][] = [];
  for (const item of items) {
    const at = nameRank(name(item), needle);
    if (at !== null) found.push([item, at]);
  }
  return topItems(found, most, (one, other) => one[1] - other[1]).map(([item]) => item);
}

/** Commands whose names match, best first. */
export function commandSuggestions(
  all: readonly { name: string; run: () => unknown }[],
  text: string,
): Suggestion[] {
  const needle = normalized(text.trim());
  if (!needle) return [];
  return best(all, needle, (one) => one.name, MOST.command).map((one) => ({
    kind: "command",
    ...one,
  }));
}

/** Places whose names match; recently visited ones (`lately`, fragments) first among equals. */
export function placeSuggestions(
  data: SuggestionState,
  text: string,
  views: readonly View[],
  only?: "people",
  lately: readonly string[] = [],
): Place[] {
  const needle = normalized(text.trim().replace(/^[#@]/, ""));
  // Visitors can't write to anyone.
  const people = data.me ? peopleIn(data, needle) : [];
  if (only === "people" || text.startsWith("@")) return people;
  const unarchived = [...data.channels.values()].filter((channel) => !channel.is_archived);
  const seen = seenLately(data, lately);
  const mine = (one: (typeof unarchived)[number]) =>
    Number(!one.subscription) * 2 + Number(!seen.channels.has(one.stream_id));
  const channels = best(
    unarchived.sort(
      (one, other) => mine(one) - mine(other) || BY_NAME.compare(one.name, other.name),
    ),
    needle,
    (channel) => channel.name,
    MOST.channel,
  ).map((channel) => ({
    kind: "channel" as const,
    id: channel.stream_id,
    name: channel.name,
    fragment: fragmentOf(channelNarrow(channel.stream_id), data),
  }));
  if (text.startsWith("#")) return channels;
  const found = best(views, needle, (view) => view.name, MOST.view).map((view) => ({
    kind: "view" as const,
    ...view,
  }));
  if (!needle) return [...found, ...channels, ...people];
  return [...found, ...channels, ...topicsIn(data, needle, seen.topics), ...people];
}

/** Recently visited places without `here`, each once, even if renamed. `named` returns the names of
 * other views; null if one no longer exists. */
export function recentPlaces(
  data: SuggestionState,
  lately: readonly string[],
  here: string,
  named: (fragment: string) => string | null,
): Place[] {
  const seen = new Set([placeKey(placeAt(data, here, named))]);
  const found: Place[] = [];
  for (const fragment of lately) {
    const place = placeAt(data, fragment, named);
    if (!place || seen.has(placeKey(place))) continue;
    seen.add(placeKey(place));
    found.push({ ...place, lately: true });
  }
  return found;
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
  found: readonly Suggestion[],
  text: string,
): [Suggestion[], Suggestion[]] {
  const needle = normalized(text.trim().replace(/^[#@]/, ""));
  const taken = new Map<string, number>();
  const first: Suggestion[] = [];
  const rest: Suggestion[] = [];
  for (const one of found) {
    const count = taken.get(one.kind) ?? 0;
    const fits = !("name" in one) || (nameRank(one.name, needle) ?? 0) < RANK_WITHIN;
    const isFirst = fits && count < (AT_FIRST[one.kind] ?? 0);
    if (isFirst) taken.set(one.kind, count + 1);
    (isFirst ? first : rest).push(one);
  }
  return [first, rest];
}

function seenLately(data: SuggestionState, lately: readonly string[]) {
  const channels = new Set<number>();
  const topics = new Set<ConversationKey>();
  for (const fragment of lately) {
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
  lately: ReadonlySet<ConversationKey>,
): Place[] {
  const newest = [...data.topicNames].reverse();
  const known = [
    ...newest.filter(([key]) => lately.has(key)),
    ...newest.filter(([key]) => !lately.has(key)),
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
    MOST.topic,
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
  const found = [];
  for (const user of data.users.values()) {
    if (user.is_active === false || (needle && !matchesPerson(user, needle))) continue;
    found.push({ user, latest: data.directs.get(`d${user.user_id}`) ?? 0 });
  }
  return topItems(
    found,
    needle ? MOST.person : 4,
    (one, other) =>
      Number(one.user.is_bot) - Number(other.user.is_bot) ||
      other.latest - one.latest ||
      BY_NAME.compare(one.user.full_name, other.user.full_name),
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
    return negated && (operator === "near" || operator === "in");
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
      return best(data.channels.values(), needle, (one) => one.name, MOST.operand).map((one) =>
        term(/^\d+(-|$)/.test(one.name) ? String(one.stream_id) : one.name),
      );
    case "topic": {
      const { narrow } = parseSearch(lastPart(text).before, data);
      const channelId = narrow.find((one) => one.operator === "channel")?.operand;
      const names = [...data.topicNames]
        .filter(([key]) => channelId === undefined || key.startsWith(`c${String(channelId)}/`))
        .map(([, name]) => name)
        .reverse();
      return best(new Set(names), needle, (name) => name, MOST.operand).map(term);
    }
    case "dm":
    case "dm-including":
    case "sender":
    case "mentions": {
      const before = operator.startsWith("dm") ? typed.slice(0, typed.lastIndexOf(",") + 1) : "";
      const last = normalized(typed.slice(before.length).trim());
      const found = peopleIn(data, last).map((one) => one.id);
      const known = operator === "sender" || operator === "mentions";
      const me = known && !typed && data.me ? ["me"] : [];
      return [...me, ...found.map((id) => before + personText(id, data))].map(term);
    }
    default:
      return [];
  }
}

/** The search for the text; null if it's empty or partly unclear. */
export function searchFor(data: SuggestionState, text: string): Suggestion | null {
  const { narrow, near, unclear } = parseSearch(text, data);
  if (!narrow.length || unclear.length) return null;
  return { kind: "search", text: text.trim(), fragment: fragmentOf(narrow, data, near) };
}
