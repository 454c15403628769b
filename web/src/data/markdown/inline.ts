import type { Chip, Mark, Names, Formatting } from "./types";

interface Delimiter {
  sign: "*" | "~";
  at: number;
  length: number;
  /** Start and length of the delimiter run. */
  run: number;
  runs: number;
  opens: boolean;
  closes: boolean;
  /** Index of the delimiter that closes this one. */
  end: number;
}

const ESCAPED = /[\\`*_{}[\]()>#+\-.!]/;
const ADDRESS = /(?:https?|ftp):\/\/[^\s<>]+/iy;
const MENTION = /@(_?)(?:\*\*([^*\n]+)\*\*|\*([^*\n]+)\*(?!\*))/y;
const PLACE = /#\*\*([^*\n]+)\*\*/y;
const FORMULA = /\$\$[^\n_$](?:\\\$|[^\n$])*\$\$(?!\$)/y;
const TIME = /<time:[^>\n]{1,100}>/y;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const WILDCARDS = ["all", "everyone", "channel", "stream", "topic"];

/** Parses the inline content of a paragraph. */
export class Prose {
  /** Matching bracket of each opening bracket. */
  readonly #closing = new Map<number, number>();
  /** Lengths of backtick runs that don't occur again. */
  readonly #noMore = new Set<number>();

  constructor(
    private readonly text: string,
    private readonly base: number,
    private readonly names: Names,
    private readonly isQuoted: boolean,
    private readonly result: Formatting,
  ) {
    const open: number[] = [];
    for (let at = 0; at < text.length; at += 1) {
      const sign = text[at];
      if (sign === "\\") at += 1;
      else if (sign === "[") open.push(at);
      else if (sign === "]" && open.length) this.#closing.set(open.pop() ?? 0, at);
    }
  }

  read(): void {
    this.#part(0, this.text.length, false);
  }

  #part(from: number, to: number, inLink: boolean): void {
    const delimiters: Delimiter[] = [];
    let at = from;
    while (at < to) {
      const next = this.#one(at, to, inLink, delimiters);
      at = next > at && next <= to ? next : at + 1;
    }
    this.#pair(delimiters);
    this.#emphasis(delimiters);
  }

  /** Parse what begins at a position. Returns its end, or the position itself for plain text. */
  #one(at: number, to: number, inLink: boolean, delimiters: Delimiter[]): number {
    switch (this.text[at]) {
      case "\\":
        if (!ESCAPED.test(this.text[at + 1] ?? "")) return at;
        this.#sign(at, at + 1, at, at + 2);
        return at + 2;
      case "`":
        return this.#code(at, to);
      case "$":
        return this.text[at - 1] === "$" ? at : this.#end(FORMULA, at);
      case "<":
        return this.#end(TIME, at);
      case "@":
        return this.#mention(at, to);
      case "#":
        return this.#place(at, to);
      case "!":
        return this.text[at + 1] === "[" ? (this.#target(at + 1, to)?.end ?? at) : at;
      case "[":
        return inLink ? at : this.#link(at, to);
      case "h":
      case "H":
      case "f":
      case "F":
        return inLink || /[A-Za-z0-9+.-]/.test(this.text[at - 1] ?? "")
          ? at
          : this.#address(at, to);
      case "*":
      case "~":
        return this.#delimiters(at, to, delimiters);
      default:
        return at;
    }
  }

  #code(at: number, to: number): number {
    const begin = this.#runEnd(at, to);
    const length = begin - at;
    for (let end = begin; end < to && !this.#noMore.has(length);) {
      if (this.text[end] !== "`") {
        const next = this.text.indexOf("`", end);
        end = next < 0 ? to : next;
        continue;
      }
      const after = this.#runEnd(end, to);
      if (after - end === length) {
        this.#mark(begin, end, "code");
        this.#sign(at, begin, at, after);
        this.#sign(end, after, at, after);
        return after;
      }
      end = after;
    }
    this.#noMore.add(length);
    return begin;
  }

  #runEnd(at: number, to: number): number {
    let end = at;
    while (end < to && this.text[end] === this.text[at]) end += 1;
    return end;
  }

  #end(pattern: RegExp, at: number): number {
    pattern.lastIndex = at;
    return pattern.test(this.text) ? pattern.lastIndex : at;
  }

  #mention(at: number, to: number): number {
    if (at && !/[\s'"({[/<]/.test(this.text[at - 1] ?? "")) return at;
    MENTION.lastIndex = at;
    const match = MENTION.exec(this.text);
    if (!match || MENTION.lastIndex > to) return at;
    const name = (match[2] ?? match[3] ?? "").trim();
    const called = match[2] === undefined ? this.names.group(name) : this.#person(name);
    if (called === null) return at;
    const isSilent = this.isQuoted || match[1] === "_";
    const end = at + match[0].length;
    const text = isSilent ? called : `@${called}`;
    this.#chip(at, end, text, isSilent ? "silent" : "mention");
    return end;
  }

  #person(name: string): string | null {
    if (WILDCARDS.includes(name)) return name;
    const [, called = name, id] = /^(.*)\|(\d{1,15})$/.exec(name) ?? [];
    return this.names.person(called, id === undefined ? null : Number(id));
  }

  #place(at: number, to: number): number {
    PLACE.lastIndex = at;
    const match = PLACE.exec(this.text);
    if (!match || PLACE.lastIndex > to) return at;
    const written = match[1] ?? "";
    const whole = this.names.channel(written);
    const cut = written.indexOf(">");
    const channel = whole ?? (cut < 0 ? null : this.names.channel(written.slice(0, cut)));
    if (channel === null) return at;
    let text = `#${channel}`;
    if (whole === null) {
      const [, topic = written.slice(cut + 1), id] =
        /^(.*)@(\d{1,15})$/.exec(written.slice(cut + 1)) ?? [];
      text += ` > ${this.names.topic(topic.trim())}${id === undefined ? "" : " @ 💬"}`;
    }
    const end = at + match[0].length;
    this.#chip(at, end, text, "place");
    return end;
  }

  #link(at: number, to: number): number {
    const target = this.#target(at, to);
    if (!target) return at;
    const { textEnd, end } = target;
    // A link without text shows its address.
    if (!this.text.slice(at + 1, textEnd).trim()) return end;
    this.#mark(at + 1, textEnd, "link");
    this.#sign(at, at + 1, at, end);
    this.#sign(textEnd, end, at, end);
    this.#part(at + 1, textEnd, true);
    return end;
  }

  /** End of the link text that begins at a bracket, and end of the link. */
  #target(bracket: number, to: number): { textEnd: number; end: number } | null {
    const textEnd = this.#closing.get(bracket);
    if (textEnd === undefined || this.text[textEnd + 1] !== "(") return null;
    let at = this.#afterSpace(textEnd + 2);
    const begin = at;
    let depth = 0;
    for (; at < to; at += 1) {
      const sign = this.text[at] ?? "";
      if (/\s/.test(sign) || (sign === ")" && !depth)) break;
      if (sign === "\\") at += 1;
      else if (sign === "(") depth += 1;
      else if (sign === ")") depth -= 1;
      if (depth > 2) return null;
    }
    const address = this.text.slice(begin, at).replace(/^<|>$/g, "");
    const title = /^[ \t\n]+(?:"[^"]*"|'[^']*')/.exec(this.text.slice(at, at + 1000));
    at = this.#afterSpace(at + (title?.[0].length ?? 0));
    if (depth || at >= to || this.text[at] !== ")" || !leads(address)) return null;
    return { textEnd, end: at + 1 };
  }

  #afterSpace(at: number): number {
    const match = /^[ \t]*(?:\n[ \t]*)?/.exec(this.text.slice(at, at + 100));
    return at + (match?.[0].length ?? 0);
  }

  #address(at: number, to: number): number {
    ADDRESS.lastIndex = at;
    const matched = ADDRESS.exec(this.text)?.[0];
    if (!matched) return at;
    const address = trimmed(matched.slice(0, to - at));
    if (!leads(address)) return at;
    const end = at + address.length;
    this.#mark(at, end, "link");
    return end;
  }

  #delimiters(at: number, to: number, all: Delimiter[]): number {
    const end = this.#runEnd(at, to);
    const runs = end - at;
    if (this.text[at] === "~") {
      if (runs === 2) {
        all.push({
          sign: "~",
          at,
          length: 2,
          run: at,
          runs: 0,
          opens: true,
          closes: true,
          end: -1,
        });
      }
      return end;
    }
    const before = at ? (this.text[at - 1] ?? " ") : " ";
    const after = end < to ? (this.text[end] ?? " ") : " ";
    const wordBefore = !/\s/.test(before) && !PUNCTUATION.test(before);
    const wordAfter = !/\s/.test(after) && !PUNCTUATION.test(after);
    const opens = !/\s/.test(after) && (wordAfter || !wordBefore);
    const closes = !/\s/.test(before) && (wordBefore || !wordAfter);
    for (let index = at; index < end; index += 1) {
      all.push({ sign: "*", at: index, length: 1, run: at, runs, opens, closes, end: -1 });
    }
    return end;
  }

  /** Match opening and closing delimiters. */
  #pair(all: Delimiter[]): void {
    const open: number[] = [];
    /** Lower bound of the search for an opener, as in CommonMark. */
    const bottoms = new Map<string, number>();
    all.forEach((closer, at) => {
      if (closer.closes) {
        const kind = `${closer.sign}${closer.opens ? 3 : 0}${closer.runs % 3}`;
        const bottom = bottoms.get(kind) ?? -1;
        let index = open.length - 1;
        while (index >= 0) {
          const opener = all[open[index] ?? 0]!;
          if (opener.at <= bottom) index = -1;
          else if (opener.run !== closer.run && fits(opener, closer)) break;
          else index -= 1;
        }
        if (index < 0) bottoms.set(kind, closer.run - 1);
        else {
          const opener = all[open[index] ?? 0]!;
          opener.end = at;
          opener.closes = false;
          closer.opens = false;
          open.length = index;
        }
      }
      if (closer.opens) open.push(at);
    });
  }

  #emphasis(all: Delimiter[]): void {
    for (let at = all.length - 1; at >= 0; at -= 1) {
      const opener = all[at]!;
      const closer = all[opener.end];
      if (!closer) continue;
      const outer = all[at - 1];
      const isStrong =
        outer?.sign === "*" &&
        outer.end === opener.end + 1 &&
        outer.at === opener.at - 1 &&
        all[outer.end]?.at === closer.at + 1;
      if (opener.sign === "~") this.#surrounded(opener.at, closer.at, 2, "del");
      else if (isStrong) this.#surrounded(opener.at - 1, closer.at, 2, "strong");
      else this.#surrounded(opener.at, closer.at, 1, "em");
      if (isStrong) at -= 1;
    }
  }

  #surrounded(from: number, to: number, length: number, look: Mark["look"]): void {
    const end = to + length;
    this.#mark(from + length, to, look);
    this.#sign(from, from + length, from, end);
    this.#sign(to, end, from, end);
  }

  #mark(from: number, to: number, look: Mark["look"]): void {
    if (from < to) this.result.marks.push({ from: this.base + from, to: this.base + to, look });
  }

  #sign(from: number, to: number, first: number, last: number): void {
    const { base } = this;
    this.result.signs.push({
      from: base + from,
      to: base + to,
      first: base + first,
      last: base + last,
    });
  }

  #chip(from: number, to: number, text: string, look: Chip["look"]): void {
    this.result.chips.push({ from: this.base + from, to: this.base + to, text, look });
  }
}

function fits(opener: Delimiter, closer: Delimiter): boolean {
  if (opener.sign !== closer.sign) return false;
  const isOdd =
    (opener.closes || closer.opens) &&
    (opener.runs + closer.runs) % 3 === 0 &&
    (opener.runs % 3 !== 0 || closer.runs % 3 !== 0);
  return !isOdd;
}

/** Whether messages may link to the address: web, mail, phone, or this site. */
function leads(address: string): boolean {
  return (
    /^(?:(?:https?|ftp):\/\/[^/]|(?:mailto|tel|sms|xmpp|news):.)/i.test(address) ||
    /^(?:[#/]|[\w.-]+:\d{1,5}(?:[/?#]|$)|\w[^:]*$)/.test(address)
  );
}

/** The address without trailing punctuation. */
function trimmed(address: string): string {
  const surplus = new Map(
    ["()", "[]", "{}"].map(([open = "", close = ""]) => [
      close,
      address.split(close).length - address.split(open).length,
    ]),
  );
  let end = address.length;
  for (; end > 0; end -= 1) {
    const last = address[end - 1] ?? "";
    const more = surplus.get(last) ?? 0;
    if (more > 0) surplus.set(last, more - 1);
    else if (!".,;:!?'\"*_~".includes(last)) break;
  }
  return address.slice(0, end);
}
