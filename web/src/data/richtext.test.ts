import { describe, expect, it } from "vitest";
import { markdownOf, type Node } from "./richtext";

function text(content: string): Node {
  return { nodeType: 3, nodeName: "#text", textContent: content, childNodes: [] };
}

function el(
  nodeName: string,
  inside: (Node | string)[],
  attributes: Record<string, string> = {},
): Node {
  const childNodes = inside.map((child) => (typeof child === "string" ? text(child) : child));
  return {
    nodeType: 1,
    nodeName: nodeName.toUpperCase(),
    childNodes,
    textContent: childNodes.map((node) => node.textContent).join(""),
    getAttribute: (name) => attributes[name] ?? null,
  };
}

const body = (...inside: (Node | string)[]) => markdownOf(el("body", inside));

describe("pasted HTML", () => {
  it("stays plain text without formatting", () => {
    expect(body(el("p", ["only ", el("span", ["words"])]))).toBeNull();
    expect(body(el("style", ["p {}"]), "words")).toBeNull();
  });

  it("keeps formatting and links", () => {
    expect(body("a ", el("b", ["bold "]), "and ", el("i", ["slanted"]))).toBe(
      "a **bold** and *slanted*",
    );
    expect(body(el("a", ["here"], { href: "https://a.example" }))).toBe(
      "[here](https://a.example)",
    );
    expect(body(el("a", ["here"], { href: "javascript:x" }), el("b", ["b"]))).toBe("here**b**");
    expect(body(el("b", ["all"], { style: "font-weight:normal" }))).toBeNull();
  });

  it("keeps spaces between words that browsers copy as separate elements", () => {
    const copied = [el("span", ["Take "]), el("strong", ["rye"]), el("span", [" flour"])];
    expect(body(...copied)).toBe("Take **rye** flour");
    expect(body(el("p", copied))).toBe("Take **rye** flour");
    expect(body("a", el("i", [" slanted"]), el("br", []), el("span", [" b"]))).toBe(
      "a *slanted*\nb",
    );
  });

  it("keeps lists", () => {
    expect(
      body(el("ul", [el("li", ["a", el("ul", [el("li", ["inner"])])]), el("li", ["b"])])),
    ).toBe("* a\n  * inner\n* b");
    expect(body(el("ol", [el("li", ["a"]), el("li", ["b"])], { start: "3" }))).toBe("3. a\n4. b");
  });

  it("keeps tables, quotes, and code", () => {
    expect(
      body(
        el("table", [
          el("tbody", [
            el("tr", [el("th", ["A"]), el("th", ["B"])]),
            el("tr", [el("td", ["1|2"]), el("td", [el("b", ["3"])])]),
          ]),
        ]),
      ),
    ).toBe("| A | B |\n| --- | --- |\n| 1\\|2 | **3** |");
    expect(body(el("p", ["x"]), el("blockquote", [el("p", ["a"]), el("p", ["b"])]))).toBe(
      "x\n\n> a\n>\n> b",
    );
    expect(body(el("pre", ["a\n  b\n"]))).toBe("```\na\n  b\n```");
    // Fences within the code don't end it.
    expect(body(el("pre", ["a\n```\nb"]))).toBe("````\na\n```\nb\n````");
    expect(body("say ", el("code", ["`a`"]), " so")).toBe("say `` `a` `` so");
  });
});
