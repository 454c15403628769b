import { expect, it } from "vitest";
import { isConverting } from "./dom";

const sources = import.meta.glob<string>("../**/*.{svelte,ts}", {
  query: "?raw",
  import: "default",
  eager: true,
});

it("keys of input methods do nothing else, in Safari too, and all code checks them in the same way", () => {
  const pressed = (key: string, keyCode: number, isComposing = false) =>
    isConverting({ key, keyCode, isComposing } as KeyboardEvent);
  expect(pressed("Enter", 229, true)).toBe(true);
  expect(pressed("Enter", 229)).toBe(true);
  expect(pressed("Enter", 13)).toBe(false);
  // On-screen keyboards report this for each key.
  expect(pressed("Backspace", 229)).toBe(false);
  const handlers = Object.entries(sources).filter(([, text]) =>
    /\bevent\.isComposing\b/.test(text),
  );
  expect(handlers.map(([path]) => path)).toEqual(["./dom.ts"]);
});
