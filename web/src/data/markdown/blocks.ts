/** Finds the formatting of Markdown while it is edited: bold text, lists, mentions, and the markup
 * that can be hidden. Follows the server's rules and never changes the text. Math, spoilers,
 * tables, polls, images, and times stay as typed. */

import { Prose } from "./inline";
import type { LineLook, Names, Formatting, Sign } from "./types";

/** Longer texts are shown as plain Markdown: every keystroke parses everything. */
export const MAX_FORMATTED_LENGTH = 50_000;

export function formatMarkdown(text: string, names: Names): Formatting {
  const result: Formatting = { marks: [], signs: [], chips: [], lines: [] };
  if (text.length <= MAX_FORMATTED_LENGTH && !/^\/(?:poll|todo)\b/.test(text)) {
    new Blocks(text, names, result).read();
  }
  return result;
}

interface Fence {
  sign: string;
  kind: "code" | "math" | "quote" | "spoiler";
  /** Depth of `>` quotes. */
  quotes: number;
  /** Signs to reveal together. */
  signs: { from: number; to: number }[];
}

/** Deeper quotes are text. */
const DEEPEST = 20;
const FENCE = /^([ \t]*)(`{3,}|~{3,})([ \t]*)(.*)$/;
const ITEM = /^([ \t]*)([*+-]|\d{1,9}\.)([ \t]+|$)/;
const HEAD = /^ {0,3}#{1,6}[ \t]+(?=[^\s#])/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const UNDER_TABLE = /^[\s|:-]*-[\s|:-]*$/;

/** Parses blocks line by line. */
class Blocks {
  readonly #fences: Fence[] = [];
  /** The paragraph so far, with block markers replaced by spaces. */
  #prose = "";
  #begin = 0;
  #isQuoted = false;
  /** Indentation of the open list items. */
  #items: number[] = [];
  /** Quote depth of the previous line. */
  #quotes = 0;
  #afterEmpty = true;
  #inTable = false;

  constructor(
    private readonly text: string,
    private readonly names: Names,
    private readonly result: Formatting,
  ) {}

  read(): void {
    const lines = this.text.split("\n");
    let from = 0;
    lines.forEach((line, at) => {
      this.#line(line, from, lines[at + 1] ?? "");
      from += line.length + 1;
    });
    this.#endProse();
    while (this.#fences.length) this.#close(this.text.length);
  }

  #line(line: string, from: number, next: string): void {
    const fence = this.#fences.at(-1);
    const isVerbatim = fence?.kind === "code" || fence?.kind === "math";
    const { quotes, width } = quotesOf(line, isVerbatim ? fence.quotes : Infinity);
    if (fence && quotes < fence.quotes) {
      // The fence ends the surrounding paragraph.
      this.#endProse();
      this.#close(from);
      this.#line(line, from, next);
      return;
    }
    const rest = line.slice(width);
    const at = from + width;
    const isEmpty = !rest.trim();
    const isLone = isEmpty && width > 0 && !this.#quotes && !hasText(next, quotes);
    // Lazy continuation of a quote.
    const isLazy = !width && !isEmpty && this.#quotes > 0 && this.#prose !== "";
    if (!isLazy) {
      if (quotes !== this.#quotes) this.#endProse();
      this.#quotes = isLone ? 0 : quotes;
    }
    if (width && !isLone) this.#begins(from, at, "quote");
    const isQuoted = this.#quotes > 0 || this.#fences.some(({ kind }) => kind === "quote");
    const look = (...looks: LineLook[]) => {
      if (isQuoted && !looks.includes("quote")) looks.push("quote");
      if (looks.length) this.result.lines.push({ from, looks, depth: this.#items.length - 1 });
    };

    if (fence && closes(rest, fence.sign)) {
      this.#endProse();
      look("fence", ...(isVerbatim ? (["code"] as const) : []));
      if (fence.kind === "code" || fence.kind === "quote") {
        fence.signs.push({ from: at + indentOf(rest), to: from + line.length });
      }
      this.#close(from + line.length);
    } else if (isVerbatim) {
      look("code");
    } else if (isEmpty) {
      this.#endProse();
      this.#inTable = false;
      if (!isLone) look();
    } else if (this.#inTable || (rest.includes("|") && isUnderTable(next))) {
      this.#endProse();
      this.#inTable = true;
      look();
    } else {
      this.#text(rest, at, isQuoted, look);
    }
    this.#afterEmpty = isEmpty;
  }

  /** A line outside of code fences and tables. */
  #text(line: string, at: number, isQuoted: boolean, look: (...looks: LineLook[]) => void): void {
    const indent = indentOf(line);
    const item = ITEM.exec(line);
    if (this.#afterEmpty && indent < 2 && !item) this.#items = [];
    const inList = this.#items.length > 0;
    const fence = FENCE.exec(line);
    const head = HEAD.exec(line);
    const inProse = this.#prose !== "";
    const isDeep = !inList && (indent >= 4 || line.startsWith("\t"));
    if (isDeep && !inProse) {
      look("code");
    } else if (fence && !isDeep && isFence(fence) && this.#fences.length < DEEPEST) {
      this.#endProse();
      this.#open(fence, at, look);
    } else if (RULE.test(line)) {
      this.#endProse();
      look();
    } else if (head) {
      this.#endProse();
      look("head");
      const { length } = head[0];
      this.#begins(at, at + length, "head");
      this.#inProse(line.slice(length), at + length, isQuoted);
      this.#endProse();
    } else if (item && !isDeep && (inList || !inProse || interrupts(line, item))) {
      this.#endProse();
      this.#item(item, at, look);
      const { length } = item[0];
      this.#inProse(line.slice(length), at + length, isQuoted);
    } else {
      look();
      this.#inProse(line, at, isQuoted);
    }
  }

  #item(match: RegExpExecArray, at: number, look: (...looks: LineLook[]) => void): void {
    const [whole, space = "", sign = ""] = match;
    while (this.#items.length && space.length < (this.#items.at(-1) ?? 0) + 2) this.#items.pop();
    this.#items.push(space.length);
    look("item");
    const to = at + whole.length;
    if (/\d/.test(sign)) this.result.marks.push({ from: at, to, look: "number" });
    else this.#begins(at, to, "item");
  }

  #open(match: RegExpExecArray, at: number, look: (...looks: LineLook[]) => void): void {
    const [, space = "", sign = "", gap = "", info = ""] = match;
    const word = /^[^ ]*/.exec(info)?.[0].toLowerCase() ?? "";
    const kind = word === "quote" || word === "spoiler" || word === "math" ? word : "code";
    const from = at + space.length;
    // Keep a code block's language and a quote's markers visible.
    const length = sign.length + (kind === "quote" ? gap.length + word.length : 0);
    const signs = kind === "code" || kind === "quote" ? [{ from, to: from + length }] : [];
    this.#fences.push({ sign, kind, quotes: this.#quotes, signs });
    const looks: LineLook[] = kind === "spoiler" ? [] : [kind === "quote" ? kind : "code"];
    look("fence", ...looks);
  }

  /** Close the innermost fence. */
  #close(last: number): void {
    const signs = this.#fences.pop()?.signs ?? [];
    const first = signs[0]?.from ?? 0;
    for (const { from, to } of signs) {
      if (from < to) this.result.signs.push({ from, to, first, last });
    }
  }

  #begins(from: number, to: number, begins: NonNullable<Sign["begins"]>): void {
    if (from < to) this.result.signs.push({ from, to, first: from, last: to - 1, begins });
  }

  #inProse(line: string, at: number, isQuoted: boolean): void {
    if (this.#prose) {
      this.#prose += "\n".padEnd(at - this.#begin - this.#prose.length) + line;
    } else {
      this.#prose = line;
      this.#begin = at;
      this.#isQuoted = isQuoted;
    }
  }

  #endProse(): void {
    if (this.#prose) {
      new Prose(this.#prose, this.#begin, this.names, this.#isQuoted, this.result).read();
    }
    this.#prose = "";
  }
}

/** The quote markers of a line: their number and total width. */
function quotesOf(line: string, max: number): { quotes: number; width: number } {
  let quotes = 0;
  let width = 0;
  while (quotes < Math.min(max, DEEPEST)) {
    const match = /^ {0,3}> ?/.exec(line.slice(width));
    if (!match) break;
    quotes += 1;
    width += match[0].length;
  }
  return { quotes, width };
}

function hasText(line: string, within: number): boolean {
  const { quotes, width } = quotesOf(line, Infinity);
  return quotes >= within && line.slice(width).trim() !== "";
}

function isUnderTable(line: string): boolean {
  const rest = line.slice(quotesOf(line, Infinity).width);
  return rest.includes("|") && UNDER_TABLE.test(rest);
}

function isFence([, , sign = "", , info = ""]: RegExpExecArray): boolean {
  return !info.includes(sign[0] ?? "");
}

function closes(line: string, sign: string): boolean {
  return line.trim() === sign;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Whether a list item may interrupt a paragraph: "1984." at the start of a line may not. */
function interrupts(line: string, item: RegExpExecArray): boolean {
  return line.length > item[0].length && (item[2] ?? "").length < 3;
}
