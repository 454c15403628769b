import { expect, test } from "vitest";

const sources = import.meta.glob<string>(["../**/*.svelte", "../**/*.ts", "!../**/*.test.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

test("HTML of the server is inserted in two places, where it's prepared", () => {
  const users = Object.entries(sources)
    .filter(([, text]) => /\{@html|\b(inner|outer)HTML\b|insertAdjacentHTML/.test(text))
    .map(([path]) => path);
  expect(users.sort()).toEqual(["../opening/preview.ts", "./Content.svelte"]);
});
