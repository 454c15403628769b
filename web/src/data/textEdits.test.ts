import { describe, expect, it } from "vitest";
import {
  makeFence,
  insertText,
  insertBlock,
  isInFence,
  lengthOf,
  makeLink,
  toggleMark,
  toggleLineMarks,
  newLine,
  pasteAddress,
  type TextSelection,
} from "./textEdits";

/** "a[b]c" is the text abc with b selected; "a|b" has the caret. */
function writing(shown: string): TextSelection {
  if (shown.includes("‸")) {
    const at = shown.indexOf("‸");
    return { text: shown.replace("‸", ""), start: at, end: at };
  }
  const start = shown.indexOf("«");
  const end = shown.indexOf("»") - 1;
  return { text: shown.replace(/[«»]/g, ""), start, end };
}

function shown({ text, start, end }: TextSelection): string {
  return start === end
    ? `${text.slice(0, start)}‸${text.slice(end)}`
    : `${text.slice(0, start)}«${text.slice(start, end)}»${text.slice(end)}`;
}

describe("formatting", () => {
  it("toggles around the selection", () => {
    expect(shown(toggleMark(writing("a «b» c"), "bold"))).toBe("a **«b»** c");
    expect(shown(toggleMark(writing("a **«b»** c"), "bold"))).toBe("a «b» c");
    expect(shown(toggleMark(writing("a ‸c"), "italic"))).toBe("a *‸*c");
  });

  it("ends at the end of the marked words", () => {
    expect(shown(toggleMark(writing("a **b‸** c"), "bold"))).toBe("a **b**‸ c");
    expect(shown(toggleMark(writing("a *b‸*"), "italic"))).toBe("a *b*‸");
    expect(shown(toggleMark(writing("**a** *b‸*"), "italic"))).toBe("**a** *b*‸");
    expect(shown(toggleMark(writing("a `b‸`"), "code"))).toBe("a `b`‸");
    // These begin words instead.
    expect(shown(toggleMark(writing("a ‸**b**"), "bold"))).toBe("a **‸****b**");
    expect(shown(toggleMark(writing("**b‸**"), "italic"))).toBe("**b*‸***");
  });

  it("leaves outer spaces outside", () => {
    expect(shown(toggleMark(writing("a« b »c"), "strike"))).toBe("a ~~«b»~~ c");
  });

  it("distinguishes italic from bold", () => {
    expect(shown(toggleMark(writing("**«b»**"), "italic"))).toBe("***«b»***");
    expect(shown(toggleMark(writing("***«b»***"), "italic"))).toBe("**«b»**");
  });

  it("turns several lines of code into a block", () => {
    expect(shown(toggleMark(writing("x «a\nb»"), "code"))).toBe("x \n```\n«a\nb»\n```");
  });
});

describe("links", () => {
  it("select the address or the text", () => {
    expect(shown(makeLink(writing("see «this»")))).toBe("see [this](«https://»)");
    expect(shown(makeLink(writing("«https://a.example»")))).toBe("[‸](https://a.example)");
    expect(shown(makeLink(writing("‸")))).toBe("[‸](https://)");
  });

  it("come from an address pasted onto words", () => {
    expect(shown(pasteAddress(writing("see «this»"), "https://a.example")!)).toBe(
      "see [this](https://a.example)‸",
    );
    expect(pasteAddress(writing("see «this»"), "some words")).toBeNull();
    expect(pasteAddress(writing("see ‸"), "https://a.example")).toBeNull();
  });
});

describe("blocks", () => {
  it("get a fence longer than any they contain", () => {
    expect(makeFence(writing("«```\nx\n```»"), "quote").text).toBe("````quote\n```\nx\n```\n````");
  });

  it("are insertText on their own lines", () => {
    expect(shown(insertBlock(writing("a‸b"), "X"))).toBe("a\nX\n‸b");
    expect(shown(insertBlock(writing("‸"), "X"))).toBe("X\n‸");
  });

  it("recognize code", () => {
    expect(isInFence("```py\nx")).toBe(true);
    expect(isInFence("```py\nx\n```\n")).toBe(false);
    expect(isInFence("```quote\nx")).toBe(false);
  });
});

describe("lines", () => {
  it("toggle a prefix each", () => {
    expect(shown(toggleLineMarks(writing("a\n«b\nc»"), "bullets"))).toBe("a\n«* b\n* c»");
    expect(shown(toggleLineMarks(writing("«* b\n* c»"), "bullets"))).toBe("«b\nc»");
    expect(shown(toggleLineMarks(writing("«b\nc»"), "numbers"))).toBe("«1. b\n2. c»");
    expect(shown(toggleLineMarks(writing("b‸"), "quote"))).toBe("> b‸");
  });

  it("continue a list and end it", () => {
    expect(shown(newLine(writing("* a‸")))).toBe("* a\n* ‸");
    expect(shown(newLine(writing("9. a‸")))).toBe("9. a\n10. ‸");
    expect(shown(newLine(writing("* a\n* ‸")))).toBe("* a\n‸");
    expect(shown(newLine(writing("```\n* a‸")))).toBe("```\n* a\n‸");
  });
});

it("inserts in place of the selection", () => {
  expect(shown(insertText(writing("a«b»c"), "XY"))).toBe("aXY‸c");
});

it("counts characters as the server does", () => {
  expect(lengthOf("a👍")).toBe(2);
});
