/** Checks that previews and notifications of arbitrary messages never fail or take long. */

import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { Reaction, Submessage } from "../wire/objects";
import {
  fitDimensions,
  isOnlyEmoji,
  internalFragment,
  plainText,
  prepareHtml,
  styleProperty,
  withoutMe,
} from "./content";
import { reactionsOf } from "./emoji";
import { characters } from "./emojiCharacters";
import { excerpt } from "./excerpt";
import { extensionOf, fileKind, pathIdOf, downloadUrl } from "./files";
import { nextIndex, widgetOf } from "./widgets";

const RUNS = { numRuns: 500, seed: 20 };

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "%E0%A4%A",
    "http://[",
    "\u202e",
    "\ud800",
    "__proto__",
    "1e999xNaN",
    "$&$1",
    "&#0;",
  ),
);
const name = fc.constantFrom(
  "p",
  "a",
  "img",
  "span",
  "video",
  "time",
  "li",
  "blockquote",
  "table",
  "b-",
);
const attribute = fc.constantFrom(
  "href",
  "src",
  "class",
  "style",
  "alt",
  "datetime",
  "data-user-id",
  "data-original-dimensions",
);
const value = fc.oneof(
  text,
  fc.constantFrom(
    "emoji emoji-ffffffff",
    "emoji emoji--",
    "message_inline_image",
    "spoiler-content",
    "katex-html",
    "background-image: url(%)",
    "/user_uploads/%ff/%E0%A4%A.png",
    "+275760-09-13T00:00:01Z",
  ),
);
const tag = fc
  .tuple(fc.boolean(), name, fc.array(fc.tuple(attribute, value), { maxLength: 3 }))
  .map(
    ([end, of, with_]) =>
      `<${end ? "/" : ""}${of}${with_.map(([k, v]) => ` ${k}="${v}"`).join("")}>`,
  );
const html = fc.array(fc.oneof(tag, text), { maxLength: 12 }).map((parts) => parts.join(""));

/** JSON with the fields of widgets and arbitrary values. */
const json = fc
  .record(
    Object.fromEntries(
      [
        "widget_type",
        "extra_data",
        "type",
        "idx",
        "key",
        "option",
        "vote",
        "question",
        "choices",
      ].map((field) => [
        field,
        fc.oneof(
          fc.jsonValue(),
          fc.constantFrom(
            "poll",
            "todo",
            "zform",
            "choices",
            "new_option",
            "new_task",
            "vote",
            "strike",
          ),
          fc.constant({ toString: 1, valueOf: 1 }),
          fc.record({
            options: fc.jsonValue(),
            tasks: fc.jsonValue(),
            type: fc.constant("choices"),
          }),
        ),
      ]),
    ),
    { requiredKeys: [] },
  )
  .map((value) => JSON.stringify(value));

const initial = fc
  .constantFrom("poll", "todo", "zform")
  .map((kind) => JSON.stringify({ widget_type: kind, extra_data: { type: "choices" } }));

describe("arbitrary messages", () => {
  it("have an excerpt, plain text, and rendered form", () => {
    fc.assert(
      fc.property(html, (content) => {
        for (const convert of [prepareHtml, plainText, withoutMe])
          expect(typeof convert(content)).toBe("string");
        expect(excerpt(content).text.length).toBeLessThanOrEqual(201);
        isOnlyEmoji(content);
      }),
      RUNS,
    );
  });

  it("can link to any address", () => {
    fc.assert(
      fc.property(value, (address) => {
        for (const read of [pathIdOf, downloadUrl, extensionOf, fileKind, characters]) {
          expect(typeof read(address)).toBe("string");
        }
        internalFragment(address, ["https://chat.example"]);
        styleProperty(address, "text-align");
        fitDimensions(address, 420, 280);
      }),
      RUNS,
    );
  });

  it("have a valid widget or none", () => {
    fc.assert(
      fc.property(fc.oneof(initial, json, text), fc.array(fc.oneof(json, text)), (first, rest) => {
        const contents = [first, ...rest];
        const submessages = contents.map((content, id): Submessage => {
          return { id, message_id: 1, sender_id: 2, msg_type: "widget", content };
        });
        const widget = widgetOf(submessages, 2);
        if (widget?.kind === "poll")
          nextIndex(
            widget.options.map((option) => option.key),
            2,
          );
        if (widget?.kind === "todo")
          nextIndex(
            widget.tasks.map((task) => task.key),
            2,
          );
      }),
      RUNS,
    );
  });

  it("can have any reactions", () => {
    const reaction = fc.record({
      emoji_name: text,
      emoji_code: text,
      reaction_type: text,
      user_id: fc.integer(),
    });
    fc.assert(
      fc.property(fc.array(reaction), (reactions) => {
        const chips = reactionsOf(reactions as Reaction[], 1);
        expect(chips.reduce((sum, chip) => sum + chip.people.length, 0)).toBe(reactions.length);
      }),
      RUNS,
    );
  });
});

it("stop scanning once there are too many emoji to enlarge", () => {
  const sign = '<span class="emoji emoji-1f1e9-1f1ea" role="img">:germany:</span>';
  const replace = vi.spyOn(String.prototype, "replace");
  expect(isOnlyEmoji(`<p>${sign.repeat(4)}</p>`)).toBe(true);
  replace.mockClear();
  expect(isOnlyEmoji(`<p>${sign.repeat(2000)}</p>`)).toBe(false);
  const calls = replace.mock.calls.length;
  replace.mockRestore();
  expect(calls).toBe(0);
});
