import { describe, expect, it } from "vitest";
import { joinParts, quotation, splitParts } from "./messageParts";
import { fileLink } from "./textEdits";

const quote = quotation(
  { senderId: 5, senderName: "Ana", text: "a\n```\ncode\n```", link: "http://x/#narrow/near/1" },
  (mention, link) => `${mention} [said](${link}):`,
);
const file = fileLink("hat.png", "/user_uploads/2/ab/hat.png");

describe("message parts", () => {
  it("split and join to the same message", () => {
    const content = `${quote}Look at this\nand that\n${file}\n${fileLink("b.pdf", "/user_uploads/2/b")}`;
    const parts = splitParts(content);
    expect(parts.quotes.map(({ who: author, text }) => [author, text])).toEqual([
      ["Ana", "a\n```\ncode\n```"],
    ]);
    expect(parts.text).toBe("Look at this\nand that");
    expect(parts.files.map(({ name, url }) => [name, url])).toEqual([
      ["hat.png", "/user_uploads/2/ab/hat.png"],
      ["b.pdf", "/user_uploads/2/b"],
    ]);
    expect(joinParts(parts)).toBe(content);
  });

  it.each([
    "plain",
    "",
    `in a line ${file}`,
    `${file} and more`,
    "ends with [a link](http://elsewhere/)",
    `\n\n${file}`,
    `text\n\n${file}`,
    `${quote}`.trimEnd(),
    `before\n${quote}after`,
    "@_**Ana|5** [said](x):\n```quote\nnever closed",
  ])("stay text if joining would change the message: %j", (content) => {
    expect(joinParts(splitParts(content))).toBe(content);
  });

  it("can be a single file, also during its upload", () => {
    expect(splitParts(file)).toMatchObject({ text: "", files: [{ name: "hat.png" }] });
    expect(splitParts("x\n[hat.png…]()")).toMatchObject({ text: "x", files: [{ url: "" }] });
  });
});

it("quotes", () => {
  const quote = quotation(
    { senderId: 3, senderName: "Ana", text: "```\nx\n```", link: "/#n" },
    (mention, link) => `${mention} [said](${link}):`,
  );
  expect(quote).toBe("@_**Ana|3** [said](/#n):\n````quote\n```\nx\n```\n````\n");
});
