import { expect, test } from "vitest";
import { previewLinks } from "./linkifierPreview";

const template = "https://bugs.example/{id}";

test("a pattern matches links, but not within words", () => {
  expect(previewLinks("#(?P<id>[0-9]+)", template, "see #12, not a#13")).toEqual([
    { text: "#12", url: "https://bugs.example/12" },
  ]);
});

test("values are encoded in the URL", () => {
  expect(previewLinks("(?P<id>[a-z/]+)!", template, "a/b!")?.[0]?.url).toBe(
    "https://bugs.example/a%2Fb",
  );
  expect(previewLinks("(?P<id>[a-z/]+)!", "https://x/{+id}", "a/b!")?.[0]?.url).toBe(
    "https://x/a/b",
  );
});

test("invalid patterns are reported", () => {
  expect(previewLinks("(", template, "")).toBeNull();
});
