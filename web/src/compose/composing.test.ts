import { beforeEach, expect, test, vi } from "vitest";
import { keyOf, type Conversation } from "../data/conversations";
import { composing, type ComposeBox } from "./composing.svelte";

const LUNCH: Conversation = { kind: "topic", channelId: 1, topic: "lunch" };
const SUPPER: Conversation = { kind: "topic", channelId: 1, topic: "supper" };

function boxOf(to: Conversation) {
  const taken: string[] = [];
  const box: ComposeBox = {
    key: keyOf(to),
    isEmpty: true,
    focus: () => {},
    quote: (text) => taken.push(text),
    insert: () => {},
    set: () => {},
    take: (text) => taken.push(text),
    addFiles: () => {},
  };
  return { box, taken };
}

beforeEach(() => {
  vi.stubGlobal("document", { activeElement: null });
  vi.stubGlobal("HTMLElement", class {});
  vi.stubGlobal("requestAnimationFrame", (call: () => void) => call());
});

test("an undone message waits until its box is mounted", () => {
  composing.takeIn(LUNCH, "Soup");
  composing.close();
  composing.takeIn(LUNCH, "Bread");
  composing.close();
  const supper = boxOf(SUPPER);
  composing.attach(supper.box)();
  expect(supper.taken).toEqual([]);
  const lunch = boxOf(LUNCH);
  composing.attach(lunch.box)();
  expect(lunch.taken).toEqual(["Soup", "Bread"]);
  composing.attach(lunch.box)();
  expect(lunch.taken).toHaveLength(2);
});

test("a quotation waits for its conversation's box, even if a new message is canceled", () => {
  composing.with(LUNCH, (box) => box.quote("Soup"));
  composing.close();
  const { box, taken } = boxOf(LUNCH);
  composing.attach(box)();
  expect(taken).toEqual(["Soup"]);
});
