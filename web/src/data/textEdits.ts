/** Text edits in the compose box: formatting, lists, quotes. */

/** A text and its selection. */
export interface TextSelection {
  text: string;
  start: number;
  end: number;
}

export type Mark = "bold" | "italic" | "strike" | "code" | "math";

const SIGNS: Record<Mark, string> = {
  bold: "**",
  italic: "*",
  strike: "~~",
  code: "`",
  math: "$$",
};

/** Replace the selection and put the caret after it. */
export function insertText({ text, start, end }: TextSelection, inserted: string): TextSelection {
  const caret = start + inserted.length;
  return { text: text.slice(0, start) + inserted + text.slice(end), start: caret, end: caret };
}

/** Insert a text on its own lines. */
export function insertBlock({ text, start, end }: TextSelection, block: string): TextSelection {
  const before = text.slice(0, start).replace(/[ \t]+$/, "");
  const after = text.slice(end).replace(/^\n+/, "");
  const open = before && !before.endsWith("\n") ? `${before}\n` : before;
  const fence = `${open}${block}\n`;
  return { text: fence + after, start: fence.length, end: fence.length };
}

/** Toggle a mark around the selection. */
export function toggleMark(writing: TextSelection, mark: Mark): TextSelection {
  const { text, start, end } = writing;
  if (mark === "code" && text.slice(start, end).includes("\n")) return makeFence(writing, "");
  const sign = SIGNS[mark];
  const { length } = sign;
  const isAround =
    text.slice(start - length, start) === sign &&
    text.slice(end, end + length) === sign &&
    (mark !== "italic" || starsAround(text, start, end) % 2 === 1);
  if (isAround && start >= length) {
    return {
      text: text.slice(0, start - length) + text.slice(start, end) + text.slice(end + length),
      start: start - length,
      end: end - length,
    };
  }
  // Typed to the end of marked words: continue after them.
  if (start === end && isBeforeEnd(text, start, mark)) {
    return { text, start: start + length, end: end + length };
  }
  // Marks next to a space have no effect, so keep outer spaces outside.
  const chosen = text.slice(start, end);
  const from = start + (chosen.length - chosen.trimStart().length);
  const to = Math.max(from, end - (chosen.length - chosen.trimEnd().length));
  return {
    text: text.slice(0, from) + sign + text.slice(from, to) + sign + text.slice(to),
    start: from + length,
    end: to + length,
  };
}

/** Whether a mark that begins in this line ends at the caret. */
function isBeforeEnd(text: string, caret: number, mark: Mark): boolean {
  const sign = SIGNS[mark];
  const line = text.slice(text.lastIndexOf("\n", caret - 1) + 1, caret);
  const rest = text.slice(caret);
  if (mark !== "italic") return rest.startsWith(sign) && line.split(sign).length % 2 === 0;
  const stars = /^\**/.exec(rest)?.[0].length ?? 0;
  return stars % 2 === 1 && line.replaceAll("**", "").split("*").length % 2 === 0;
}

function starsAround(text: string, start: number, end: number): number {
  const before = /\**$/.exec(text.slice(0, start))?.[0].length ?? 0;
  const after = /^\**/.exec(text.slice(end))?.[0].length ?? 0;
  return Math.min(before, after);
}

/** Turn the selection into a link, and select the address or the empty text. */
export function makeLink({ text, start, end }: TextSelection): TextSelection {
  const chosen = text.slice(start, end);
  if (isAddress(chosen)) {
    const link = `[](${chosen})`;
    return {
      text: text.slice(0, start) + link + text.slice(end),
      start: start + 1,
      end: start + 1,
    };
  }
  const link = `[${chosen}](https://)`;
  const address = start + chosen.length + 3;
  const whole = text.slice(0, start) + link + text.slice(end);
  return chosen
    ? { text: whole, start: address, end: address + "https://".length }
    : { text: whole, start: start + 1, end: start + 1 };
}

function isAddress(text: string): boolean {
  return /^(https?:\/\/|mailto:)\S+$/i.test(text.trim());
}

/** Pasting an address onto selected words links them; null if that doesn't apply. */
export function pasteAddress(writing: TextSelection, pasted: string): TextSelection | null {
  const { text, start, end } = writing;
  const chosen = text.slice(start, end);
  if (!isAddress(pasted) || !chosen.trim() || isAddress(chosen) || /[\n[\]`]/.test(chosen)) {
    return null;
  }
  return insertText(writing, `[${chosen}](${pasted.trim()})`);
}

/** Fence the selection: a code language, `quote`, or `spoiler …`. */
export function makeFence({ text, start, end }: TextSelection, language: string): TextSelection {
  const chosen = text.slice(start, end).replace(/^\n+|\n+$/g, "");
  const fence = fenceFor(chosen);
  const before = text.slice(0, start);
  const after = text.slice(end);
  const open = `${before && !before.endsWith("\n") ? "\n" : ""}${fence}${language}\n`;
  const close = `\n${fence}${after && !after.startsWith("\n") ? "\n" : ""}`;
  const from = start + open.length;
  return {
    text: before + open + chosen + close + after,
    start: from,
    end: from + chosen.length,
  };
}

/** A fence longer than any in the text. */
export function fenceFor(text: string): string {
  let longest = 2;
  for (const [run] of text.matchAll(/^\s*(`{3,})/gm))
    longest = Math.max(longest, run.trim().length);
  return "`".repeat(longest + 1);
}

type LineMark = "bullets" | "numbers" | "quote";

const LINES: Record<LineMark, { is: RegExp; put: (line: string, at: number) => string }> = {
  bullets: { is: /^\* /, put: (line) => `* ${line}` },
  numbers: { is: /^\d+\. /, put: (line, at) => `${at + 1}. ${line}` },
  quote: { is: /^> ?/, put: (line) => `> ${line}` },
};

/** Toggle a prefix on each selected line. */
export function toggleLineMarks(
  { text, start, end }: TextSelection,
  mark: LineMark,
): TextSelection {
  const { is, put } = LINES[mark];
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const next = text.indexOf("\n", end);
  const to = next < 0 ? text.length : next;
  const lines = text.slice(from, to).split("\n");
  const all = lines.every((line) => is.test(line));
  const replaced = lines.map((line, at) => (all ? line.replace(is, "") : put(line, at))).join("\n");
  const whole = text.slice(0, from) + replaced + text.slice(to);
  const last = from + replaced.length;
  return start === end
    ? { text: whole, start: last, end: last }
    : { text: whole, start: from, end: last };
}

/** Enter: continue a list or quote, or end it at an empty item. */
export function newLine(writing: TextSelection): TextSelection {
  const { text, start } = writing;
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const line = text.slice(from, start);
  const match = /^(\s*)(?:([*+-])|(\d+)\.|(>)) (.*)$/.exec(line);
  if (!match || isInFence(text.slice(0, start))) return insertText(writing, "\n");
  const [, indent = "", bullet, number, quote, rest = ""] = match;
  if (!rest.trim()) {
    return insertText({ text, start: from, end: writing.end }, "");
  }
  const sign = bullet ?? quote ?? `${Number(number) + 1}.`;
  return insertText(writing, `\n${indent}${sign} `);
}

/** Whether the text ends within a code fence. */
export function isInFence(text: string): boolean {
  let open: string | null = null;
  for (const line of text.split("\n")) {
    const match = /^\s*(`{3,}|~{3,})(.*)$/.exec(line);
    const sign = match?.[1];
    if (!sign) continue;
    if (open === null) open = /^(quote|spoiler)\b/.test(match[2]?.trim() ?? "") ? "" : sign;
    else if (open === "" || (sign[0] === open[0] && sign.length >= open.length)) open = null;
  }
  return Boolean(open);
}

export function fileLink(name: string, url: string): string {
  return `[${name.replace(/[[\]]/g, "")}](${url})`;
}

/** Length in code points, as the server counts. */
export function lengthOf(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
