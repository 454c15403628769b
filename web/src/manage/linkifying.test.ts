import { expect, test } from "vitest";
import { linksIn } from "./linkifying";

const template = "https://bugs.example/{id}";

test("a pattern matches links, but not within words", () => {
  expect(linksIn("#(?P<id>[0-9]+)", template, "see #12, not a#13")).toEqual([
    { text: "#12", url: "https://bugs.example/12" },
  ]);
});

test("values are encoded in the URL", () => {
  expect(linksIn("(?P<id>[a-z/]+)!", template, "a/b!")?.[0]?.url).toBe(
    "https://bugs.example/a%2Fb",
  );
  expect(linksIn("(?P<id>[a-z/]+)!", "https://x/{+id}", "a/b!")?.[0]?.url).toBe("https://x/a/b");
});

test("invalid patterns are reported", () => {
  expect(linksIn("(", template, "")).toBeNull();
});
