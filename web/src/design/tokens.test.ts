import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const SOURCE = readFileSync("../src/tertulia/wire/assets/tokens.css", "utf8");
const SURFACES = ["sunken", "paper", "raised", "hover", "chosen"];
const GROUNDS = [...SURFACES, "accent-soft", "mention", "trouble-soft", "code"];
const TEXTS = ["ink", "soft", "faint", "accent", "accent-strong", "trouble", "good"];
const CODE = ["code-word", "code-text", "code-number", "code-name", "code-known"];

type Tokens = Record<string, string>;

/** The declarations in the braces after `start`. */
function block(start: string): Tokens {
  const inside = SOURCE.slice(SOURCE.indexOf(start)).match(/:root[^{]*\{([^}]*)\}/)?.[1] ?? "";
  return Object.fromEntries(
    [...inside.matchAll(/--([\w-]+): ([^;]+);/g)].map(([, name, value]) => [name, value]),
  );
}

const plain = block(":root {");
const more = block("@media (prefers-contrast: more)");
const forced = block("@media (forced-colors: active)");

/** Relative luminance by WCAG 2. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Pairs with less contrast than `least`, in light or dark. */
function tooFaint(tokens: Tokens, texts: string[], grounds: string[], least: number): string[] {
  const results = [];
  for (const text of texts) {
    for (const ground of grounds) {
      for (const at of [0, 1]) {
        const [over, under] = [text, ground].map((name) =>
          luminance(tokens[name]?.match(/#\w{6}/g)?.[at] ?? ""),
        ) as [number, number];
        const ratio = (Math.max(over, under) + 0.05) / (Math.min(over, under) + 0.05);
        if (!(ratio >= least)) results.push(`${text} on ${ground}: ${ratio.toFixed(2)}`);
      }
    }
  }
  return results;
}

describe("colors", () => {
  it.each([
    ["as they are", plain, 4.5],
    ["with more contrast", { ...plain, ...more }, 7],
  ])("of text are readable in %s", (_, tokens, least) => {
    expect(tooFaint(tokens, TEXTS, GROUNDS, least)).toEqual([]);
    expect(tooFaint(tokens, CODE, ["code"], least)).toEqual([]);
    expect(tooFaint(tokens, ["on-accent"], ["accent", "accent-strong"], least)).toEqual([]);
    expect(tooFaint(tokens, ["ink"], ["found"], least)).toEqual([]);
  });

  it("of fields and icons are visible", () => {
    const below = ["sunken", "paper", "raised"];
    expect(tooFaint(plain, ["field", "away"], below, 3)).toEqual([]);
    expect(tooFaint({ ...plain, ...more }, ["line", "field", "away"], SURFACES, 3)).toEqual([]);
  });

  it("have more contrast by the system's preference as by the user's", () => {
    expect(Object.keys(more).length).toBeGreaterThan(20);
    expect(block(':root[data-contrast="high"]')).toEqual(more);
  });

  it("are the system's in forced colors", () => {
    const colours = Object.keys(plain).filter((name) => /#|rgb\(/.test(plain[name] ?? ""));
    const left = ["shade", "shadow"];
    expect(colours.filter((name) => !(name in forced) && !left.includes(name))).toEqual([]);
    expect(Object.values(forced).filter((value) => /#|rgb\(/.test(value))).toEqual([]);
  });
});
