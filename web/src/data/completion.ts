/** Suggestions for what is being typed. */

import { Role, type User, type UserGroup } from "../wire/objects";
import type { Channel } from "./data";
import { searchEmoji, emojiText, type Emoji, type Tone, type UnicodeEmoji } from "./emoji";
import { bestMatches, matchRank, normalized } from "./matching";
import { isInFence } from "./textEdits";

export type Choice =
  | { kind: "person"; user: User; text: string }
  | { kind: "group"; group: UserGroup; text: string }
  | { kind: "wildcard"; name: "all" | "topic"; text: string }
  | { kind: "channel"; channel: Channel; text: string }
  | { kind: "topic"; topic: string; isNew: boolean; text: string }
  | { kind: "emoji"; emoji: Emoji; text: string }
  | { kind: "command"; name: Command; text: string }
  | { kind: "language"; name: string; text: string };

const COMMANDS = ["me", "poll", "todo", "dark", "light"] as const;
export type Command = (typeof COMMANDS)[number];

/** Popular languages, and the fences that aren't code. */
export const LANGUAGES = [
  "quote",
  "spoiler",
  "math",
  ..."bash c c++ c# clojure cpp css diff docker elixir erlang go graphql haskell html http ini java javascript json jsx julia kotlin latex lua make markdown matlab nginx nix objective-c ocaml perl php powershell python r ruby rust scala shell sql swift text toml tsx typescript vim xml yaml zig".split(
    " ",
  ),
];

const MAX_CHOICES = 8;

/** People with normalized names, prepared once for many keystrokes. */
export interface Known {
  people: readonly { user: User; plain: string; isTwin: boolean }[];
  channels: readonly { channel: Channel; plain: string }[];
  groups: readonly { group: UserGroup; plain: string }[];
}

export function knownOf(
  users: ReadonlyMap<number, User>,
  channels: ReadonlyMap<number, Channel>,
  groups: ReadonlyMap<number, UserGroup>,
): Known {
  const names = new Map<string, number>();
  const active = [...users.values()].filter((user) => user.is_active !== false);
  for (const { full_name } of users.values()) names.set(full_name, (names.get(full_name) ?? 0) + 1);
  return {
    people: active.map((user) => ({
      user,
      plain: normalized(user.full_name),
      isTwin: (names.get(user.full_name) ?? 0) > 1,
    })),
    channels: [...channels.values()]
      .filter((channel) => !channel.is_archived)
      .map((channel) => ({ channel, plain: normalized(channel.name) })),
    groups: [...groups.values()]
      .filter((group) => !group.deactivated && !group.is_system_group)
      .map((group) => ({ group, plain: normalized(group.name) })),
  };
}

export interface Scene {
  known: Known;
  /** People who wrote here recently, newest first. */
  participants: readonly number[];
  /** In a topic, `@all` and `@topic` can be mentioned. */
  inTopic: boolean;
  topics?: readonly string[];
  emoji: readonly UnicodeEmoji[];
  ownEmoji: readonly Emoji[];
  /** Those used lately, newest first. */
  usedEmoji: readonly Emoji[];
  tone: Tone;
  me: number;
  /** Link to a channel or topic whose name can't be written as a mention. */
  address: (channelId: number, topic?: string) => string;
  playgrounds: readonly string[];
}

export function choices(token: Token, scene: Scene): Choice[] {
  switch (token.kind) {
    case "person":
      return mentions(token, scene);
    case "channel":
      return channelsFor(token.query, scene.known).map((channel) => ({
        kind: "channel",
        channel,
        text: `${linkText(channel, undefined, scene)} `,
      }));
    case "topic":
      return topicLinks(token, scene);
    case "emoji":
      return searchEmoji(
        scene.emoji,
        scene.ownEmoji,
        token.query,
        scene.usedEmoji,
        MAX_CHOICES,
      ).map((emoji) => ({
        kind: "emoji",
        emoji,
        text: `${emojiText(emoji, scene.tone)} `,
      }));
    case "command":
      return COMMANDS.filter((name) => name.startsWith(token.query)).map((name) => ({
        kind: "command",
        name,
        text: `/${name}${name === "dark" || name === "light" ? "" : " "}`,
      }));
    case "language":
      return languages(token.query, scene.playgrounds).map((name) => ({
        kind: "language",
        name,
        text: `${name}${name === "spoiler" ? " " : "\n"}`,
      }));
  }
}

/** People whose names match, participants and subscribers first. */
export function peopleFor(
  query: string,
  { known, participants, me }: Pick<Scene, "known" | "participants" | "me">,
  limit = MAX_CHOICES,
): User[] {
  return scoredPeople(normalized(query), known, participants, me, limit).map(({ user }) => user);
}

function scoredPeople(
  needle: string,
  known: Known,
  participants: readonly number[],
  me: number,
  limit: number,
) {
  const near = new Map(participants.map((id, at) => [id, Math.min(at, 50) / 100]));
  return bestMatches(
    known.people,
    ({ user, plain: name }) => {
      let rank = matchRank(name, needle);
      if (rank === null && needle && emailFits(user, needle)) rank = 3;
      if (rank === null) return null;
      // Names that begin with the query come first, then people nearby; bots come last.
      const group = rank <= 2 ? 0 : rank;
      return (
        group * 10 +
        (rank === 0 ? 0 : 1) +
        (near.get(user.user_id) ?? 1) +
        (user.is_bot ? 3 : 0) +
        (user.user_id === me ? 2 : 0) +
        rank / 1000
      );
    },
    limit,
  );
}

function emailFits(user: User, needle: string): boolean {
  return user.delivery_email?.toLowerCase().startsWith(needle) ?? false;
}

function mentions(token: Token, scene: Scene): Choice[] {
  const needle = normalized(token.query);
  const at = token.silent ? "@_" : "@";
  const people = scoredPeople(needle, scene.known, scene.participants, scene.me, MAX_CHOICES);
  const groups = bestMatches(scene.known.groups, ({ plain: name }) => matchRank(name, needle), 4);
  const wildcards = (["all", "topic"] as const).filter((name) => {
    if (name === "topic" && !scene.inTopic) return false;
    const names = name === "all" ? ["all", "everyone", "channel"] : ["topic"];
    return needle && names.some((name) => name.startsWith(needle));
  });
  const choices: Choice[] = [
    ...people.map(({ user, isTwin }): Choice => {
      const name = isTwin ? `${user.full_name}|${user.user_id}` : user.full_name;
      return { kind: "person", user, text: `${at}**${name}** ` };
    }),
    ...groups.map(({ group }): Choice => ({
      kind: "group",
      group,
      text: `${at}*${group.name}* `,
    })),
  ];
  const general = wildcards.map((name): Choice => ({
    kind: "wildcard",
    name,
    text: `${at}**${name}** `,
  }));
  // An exact wildcard comes first.
  const exact = general.filter((mention) => mention.kind === "wildcard" && mention.name === needle);
  const rest = general.filter((mention) => !exact.includes(mention));
  return [...exact, ...choices.slice(0, MAX_CHOICES - general.length), ...rest];
}

export function channelsFor(query: string, known: Known, limit = MAX_CHOICES): Channel[] {
  const needle = normalized(query);
  return bestMatches(
    known.channels,
    ({ channel, plain: name }) => {
      const rank = matchRank(name, needle);
      if (rank === null) return null;
      return rank * 10 + (channel.subscription ? 0 : 5) + (channel.subscription?.is_muted ? 2 : 0);
    },
    limit,
  ).map(({ channel }) => channel);
}

export function topicsFor(query: string, topics: readonly string[], limit = MAX_CHOICES): string[] {
  const needle = normalized(query.trim());
  return bestMatches(
    topics,
    (topic) => {
      const rank = matchRank(normalized(topic.replace(/^✔ /, "")), needle);
      return rank === null ? null : rank + (topic.startsWith("✔ ") ? 1.5 : 0);
    },
    limit,
  );
}

function topicLinks(token: Token, scene: Scene): Choice[] {
  const needle = normalized(token.channel ?? "");
  const channel = scene.known.channels.find((known) => known.plain === needle)?.channel;
  if (!channel) return [];
  const topics = scene.topics ?? [];
  const link = (topic: string) => `${linkText(channel, topic, scene)} `;
  const matches = topicsFor(token.query, topics).map((topic): Choice => ({
    kind: "topic",
    topic,
    isNew: false,
    text: link(topic),
  }));
  const typed = token.query.trim();
  if (typed && !topics.some((topic) => normalized(topic) === normalized(typed))) {
    matches.push({ kind: "topic", topic: typed, isNew: true, text: link(typed) });
  }
  return matches;
}

/** Mention by name, or link if the name contains a delimiter. */
function linkText(channel: Channel, topic: string | undefined, scene: Scene): string {
  const isOdd = /[>*`[\]]|\$\$/.test(channel.name) || /\*\*|[`[\]]|\$\$/.test(topic ?? "");
  const name = topic === undefined ? channel.name : `${channel.name}>${topic}`;
  if (!isOdd) return `#**${name}**`;
  const shown = name.replace(">", " > ").replace(/[[\]`*]/g, "");
  return `[#${shown}](${scene.address(channel.stream_id, topic)})`;
}

function languages(query: string, playgrounds: readonly string[]): string[] {
  // Enter after a bare fence should start a new line, so nothing is suggested yet.
  if (!query) return [];
  const all = [
    ...new Set([...playgrounds.map((language) => language.toLowerCase()), ...LANGUAGES]),
  ];
  return bestMatches(all, (name) => matchRank(name, query.toLowerCase()), MAX_CHOICES);
}

export function isGuest(user: User): boolean {
  return user.role === Role.guest;
}

export interface Token {
  kind: "person" | "channel" | "topic" | "emoji" | "command" | "language";
  /** The part typed so far. */
  query: string;
  /** The range that a suggestion replaces. */
  start: number;
  end: number;
  /** A silent mention. */
  silent?: boolean;
  /** The topic's channel as typed. */
  channel?: string;
}

const PREFIX = String.raw`(?:^|[\s'"({\[/<])`;
const PERSON = new RegExp(String.raw`${PREFIX}(@(_?)\*{0,2}([^*@\n]{0,60}))$`);
const TOPIC_MARKED = new RegExp(
  String.raw`${PREFIX}(#\*\*([^*>\n]{1,60})(?:\*\*)? ?>([^*\n]{0,60}))$`,
);
const TOPIC = new RegExp(String.raw`${PREFIX}(#([^*>#\n]{1,60})>([^*\n]{0,60}))$`);
const CHANNEL = new RegExp(String.raw`${PREFIX}(#\*{0,2}([^*#>\n]{0,60}))$`);
const EMOJI = new RegExp(String.raw`${PREFIX}(:([\p{L}\p{N}_+-][^\s:*]{1,40}))$`, "u");
const COMMAND = /^(\/([a-z]*))$/;
const LANGUAGE = /(?:^|\n)((?:`{3,}|~{3,})[ \t]*([\w#+.-]*))$/;

export function tokenAt(text: string, caret: number): Token | null {
  const before = text.slice(0, caret);
  const token = (kind: Token["kind"], match: RegExpExecArray, query: string): Token => ({
    kind,
    query,
    start: caret - (match[1] ?? "").length,
    end: caret,
  });

  const language = LANGUAGE.exec(before);
  if (language) {
    if (isInFence(before.slice(0, caret - (language[1] ?? "").length))) return null;
    const query = language[2] ?? "";
    return { ...token("language", language, query), start: caret - query.length };
  }
  const command = COMMAND.exec(before);
  if (command) return token("command", command, command[2] ?? "");
  if (isInCode(before)) return null;

  const topic = TOPIC_MARKED.exec(before) ?? TOPIC.exec(before);
  if (topic) {
    return { ...token("topic", topic, topic[3] ?? ""), channel: (topic[2] ?? "").trim() };
  }
  const person = PERSON.exec(before);
  if (person && !/^\s/.test(person[3] ?? "")) {
    return { ...token("person", person, person[3] ?? ""), silent: person[2] === "_" };
  }
  const channel = CHANNEL.exec(before);
  if (channel && !/^\s/.test(channel[2] ?? "")) return token("channel", channel, channel[2] ?? "");
  const emoji = EMOJI.exec(before);
  return emoji ? token("emoji", emoji, emoji[2] ?? "") : null;
}

function isInCode(before: string): boolean {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return (line.match(/`/g)?.length ?? 0) % 2 === 1 || isInFence(before);
}
