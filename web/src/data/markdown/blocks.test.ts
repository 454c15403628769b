import * as fc from "fast-check";
import { expect, test } from "vitest";
import { formatMarkdown } from "./blocks";
import { type Names } from "./types";
import { hard } from "./fixtures";

const NAMES: Names = {
  person: (name, id) => (name === "Ann Lee" || id === 5 ? "Ann Lee" : null),
  group: (name) => (name === "cooks" ? name : null),
  channel: (name) => (["general", "a>b"].includes(name) ? name : null),
  topic: (name) => name || "general chat",
};

const OPENS = { strong: "<b>", em: "<i>", del: "<s>", code: "<c>", link: "<a>", number: "<n>" };

/** A text as the editor shows it: formatting as tags, hidden markup removed, chips in braces. */
function seen(text: string): string {
  const { marks, signs, chips, lines } = formatMarkdown(text, NAMES);
  const at: string[][] = Array.from({ length: text.length + 1 }, () => []);
  for (const { from, looks } of lines) at[from]?.push(`${[...looks].sort().join(" ")}: `);
  const inner = [...marks].sort((a, b) => a.from - b.from || b.to - a.to);
  for (const { from, look } of inner) at[from]?.push(OPENS[look]);
  for (const { to, look } of inner.reverse()) at[to]?.unshift(OPENS[look].replace("<", "</"));
  const hidden = [...signs, ...chips];
  let output = "";
  for (let position = 0; position <= text.length; position += 1) {
    output += at[position]?.join("") ?? "";
    output += chips.filter(({ from }) => from === position).map((chip) => `{${chip.text}}`);
    if (!hidden.some(({ from, to }) => from <= position && position < to))
      output += text[position] ?? "";
  }
  return output;
}

test.each([
  // Inline
  ["**Bread** and *butter*", "<b>Bread</b> and <i>butter</i>"],
  ["***both***", "<i><b>both</b></i>"],
  ["**a *b* c**", "<b>a <i>b</i> c</b>"],
  ["**two\nlines**", "<b>two\nlines</b>"],
  ["2 * 3 * 4, a** b **c", "2 * 3 * 4, a** b **c"],
  ["snake_case_name and __init__", "snake_case_name and __init__"],
  ["~~gone~~ ~one~ ~~~~", "<s>gone</s> ~one~ ~~~~"],
  ["`code` ``a ` b`` `open", "<c>code</c> <c>a ` b</c> `open"],
  ["`**not bold**`", "<c>**not bold**</c>"],
  [String.raw`\*not\* \a`, String.raw`*not* \a`],
  ["$$a*b*c$$ *d*", "$$a*b*c$$ <i>d</i>"],
  ["<time:2026-01-01T*1*> *d*", "<time:2026-01-01T*1*> <i>d</i>"],
  ['[a **b**](https://x.example/(y) "t")', "<a>a <b>b</b></a>"],
  [
    "[a](javascript:x) [b](https://) [](https://x.y)",
    "[a](javascript:x) [b](https://) [](https://x.y)",
  ],
  ["![a](/user_uploads/a.png)", "![a](/user_uploads/a.png)"],
  ["See https://x.example/a*b*c.", "See <a>https://x.example/a*b*c</a>."],
  // Mentions and links
  ["@**Ann Lee** @**Ann Lee|5** @**Nobody**", "{@Ann Lee} {@Ann Lee} @<b>Nobody</b>"],
  ["@_**|5** @*cooks* @**all** a@**all**", "{Ann Lee} {@cooks} {@all} a@<b>all</b>"],
  ["#**general** #**a>b** #**none**", "{#general} {#a>b} #<b>none</b>"],
  [
    "#**general>lunch** #**general>** #**general>x@7**",
    "{#general > lunch} {#general > general chat} {#general > x @ 💬}",
  ],
  // Blocks
  ["# Head *a*\n#none", "head: Head <i>a</i>\n#none"],
  ["* a\n- b\n  + c\n1. d", "item: a\nitem: b\nitem: c\nitem: <n>1. </n>d"],
  ["a\n* b\n1984. c", "a\nitem: b\nitem: <n>1984. </n>c"],
  ["a\n1984. c", "a\n1984. c"],
  ["* *a\nb*", "item: <i>a\nb</i>"],
  ["> a *b\n> c*\nlazy\n\nout", "quote: a <i>b\nquote: c</i>\nquote: lazy\n\nout"],
  [">", ">"],
  ["> @**all**", "quote: {all}"],
  ["```py\n**x**\n```\n*a*", "code fence: py\ncode: **x**\ncode fence: \n<i>a</i>"],
  ["~~~\n```\n~~~", "code fence: \ncode: ```\ncode fence: "],
  ["```\n````\nx\n````\n```", "code fence: \ncode: ````\ncode: x\ncode: ````\ncode fence: "],
  ["```open\n*a*", "code fence: open\ncode: *a*"],
  ["```quote\n*a*\n```", "fence quote: \nquote: <i>a</i>\nfence quote: "],
  ["> ```\n> x\nout", "code fence quote: \ncode quote: x\nout"],
  ["    code *a*\n\ntext\n    text", "code:     code *a*\n\ntext\n    text"],
  ["* * *\n---\n*a*", "* * *\n---\n<i>a</i>"],
  // Left as typed
  ["| *a* | b |\n|---|---|\n| `c` | d |\n\n*e*", "| *a* | b |\n|---|---|\n| `c` | d |\n\n<i>e</i>"],
  ["```math\na*b*c\n```", "code fence: ```math\ncode: a*b*c\ncode fence: ```"],
  ["```spoiler *a*\n*b*\n```", "fence: ```spoiler *a*\n<i>b</i>\nfence: ```"],
  ["/poll *a*\n*b*", "/poll *a*\n*b*"],
])("formats %j", (text, expected) => {
  expect(seen(text)).toBe(expected);
});

test("hides only markup", () => {
  fc.assert(
    fc.property(hard, (text) => {
      const { marks, signs, chips, lines } = formatMarkdown(text, NAMES);
      for (const { from, to } of [...marks, ...signs, ...chips]) {
        expect(0 <= from && from < to && to <= text.length).toBe(true);
      }
      const starts = new Set([0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]);
      expect(lines.every(({ from }) => starts.has(from))).toBe(true);
      for (const { from, to, first, last } of signs) {
        expect(text.slice(from, to)).toMatch(
          /^(?:[*~`\\[]+|[ \t]*[*+-][ \t]*|(?: {0,3}> ?)+| {0,3}#+[ \t]+|(?:`+|~+)[ \t]*(?:quote)?[ \t]*|\]\([\s\S]*\))$/i,
        );
        expect(first <= from && last <= text.length).toBe(true);
      }
    }),
  );
});
