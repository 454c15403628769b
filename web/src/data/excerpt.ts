/** A message's text in one line, for lists of conversations. */

import { characters } from "./emojiCharacters";

/** Content that isn't text. */
export type ExcerptIcon = "picture" | "file" | "hidden" | "poll" | "list";

export interface Excerpt {
  text: string;
  sign: ExcerptIcon | null;
}

/** Longer than any window shows. */
const MAX_LENGTH = 200;

const HTML_TOKEN = /<(\/?)([a-z][a-z0-9]*)([^<>]*)>|([^<]+)/g;
const ENTITIES: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  "#x27": "'",
  nbsp: " ",
  amp: "&",
};
/** Elements to drop, and the icon that replaces them. */
const LEFT_OUT: [pattern: RegExp, sign: ExcerptIcon | null][] = [
  [/\bspoiler-content\b/, "hidden"],
  [/\bmessage_inline_image\b/, "picture"],
  [/\bmessage_embed\b/, null],
  [/\bkatex-html\b/, null],
  [/\bspoiler-button\b/, null],
];
/** Only the first icon that applies is shown. */
const ORDER: readonly ExcerptIcon[] = ["hidden", "picture", "file"];

/** The text of a rendered message. Quotes are dropped if the message has other text; images and
 * files are named, and spoilers stay hidden. */
export function excerpt(html: string): Excerpt {
  const signs = new Set<ExcerptIcon>();
  let written = "";
  let quoted = "";
  let quotes = 0;
  let skipped: { name: string; depth: number } | null = null;
  const add = (text: string) => {
    if (quotes) quoted += text;
    else written += text;
  };
  for (const [, end, name = "", rest = "", text] of html.matchAll(HTML_TOKEN)) {
    if (skipped) {
      if (name === skipped.name) skipped.depth += end ? -1 : 1;
      if (skipped.depth === 0) skipped = null;
      continue;
    }
    if (text !== undefined) {
      add(text);
      if (written.length > MAX_LENGTH) break;
      continue;
    }
    if (name === "blockquote") quotes = Math.max(0, quotes + (end ? -1 : 1));
    if (end) {
      if (!/^(?:a|span|strong|em|del|code|time)$/.test(name)) add(" ");
      continue;
    }
    const leftOut = LEFT_OUT.find(([pattern]) => pattern.test(rest));
    if (leftOut) {
      if (leftOut[1]) signs.add(leftOut[1]);
      skipped = { name, depth: 1 };
      continue;
    }
    const code = /\bemoji-([0-9a-f]+(?:-[0-9a-f]+)*)"/.exec(rest)?.[1];
    if (code) {
      add(characters(code));
      skipped = { name, depth: 1 };
    } else if (name === "img") {
      if (rest.includes("inline-image")) signs.add("picture");
      add(attribute(rest, "alt"));
    } else if (name === "audio") {
      signs.add("file");
      add(attribute(rest, "title"));
    } else if (name === "a" && attribute(rest, "href").startsWith("/user_uploads/")) {
      signs.add("file");
    } else if (name === "br") add(" ");
  }
  const content = plain(written) || plain(quoted);
  return { text: content, sign: ORDER.find((sign) => signs.has(sign)) ?? null };
}

function attribute(tag: string, name: string): string {
  return new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? "";
}

function plain(text: string): string {
  const known = text.replace(/&(#?\w+);/g, (all, name: string) => ENTITIES[name] ?? all);
  const line = known.replace(/\s+/g, " ").trim();
  // Don't split a surrogate pair.
  return line.length > MAX_LENGTH
    ? `${line.slice(0, MAX_LENGTH).replace(/[\ud800-\udbff]$/, "")}…`
    : line;
}
