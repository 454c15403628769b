/** The token at the caret that can be completed. */

import { isInFence } from "./marking";

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

const OPENS = String.raw`(?:^|[\s'"({\[/<])`;
const PERSON = new RegExp(String.raw`${OPENS}(@(_?)\*{0,2}([^*@\n]{0,60}))$`);
const TOPIC_MARKED = new RegExp(
  String.raw`${OPENS}(#\*\*([^*>\n]{1,60})(?:\*\*)? ?>([^*\n]{0,60}))$`,
);
const TOPIC = new RegExp(String.raw`${OPENS}(#([^*>#\n]{1,60})>([^*\n]{0,60}))$`);
const CHANNEL = new RegExp(String.raw`${OPENS}(#\*{0,2}([^*#>\n]{0,60}))$`);
const EMOJI = new RegExp(String.raw`${OPENS}(:([\p{L}\p{N}_+-][^\s:*]{1,40}))$`, "u");
const COMMAND = /^(\/([a-z]*))$/;
const LANGUAGE = /(?:^|\n)((?:`{3,}|~{3,})[ \t]*([\w#+.-]*))$/;

export function tokenAt(text: string, caret: number): Token | null {
  const before = text.slice(0, caret);
  const token = (kind: Token["kind"], found: RegExpExecArray, query: string): Token => ({
    kind,
    query,
    start: caret - (found[1] ?? "").length,
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
