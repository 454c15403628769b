import { expect, test } from "vitest";
import type { ServerEvent } from "../wire/events";
import type { Pin } from "../wire/objects";
import { pinsAfter, pinsIn, type Known } from "./pins";

const pin = (message_id: number, more: Partial<Pin> = {}): Pin => ({
  message_id,
  stream_id: 7,
  topic: "plans",
  pinned_by: 1,
  pinned_at: 100 + message_id,
  ...more,
});
const known: Known = new Map([
  [7, [pin(3), pin(1, { topic: "Lunch" })]],
  [8, []],
]);

function after(event: Omit<ServerEvent, "id"> & { type: string }) {
  const { known: now, unsure } = pinsAfter(known, { id: 1, ...event } as ServerEvent);
  const shown = [...now].map(([id, pins]) => [id, pins.map((pin) => [pin.message_id, pin.topic])]);
  return { ...Object.fromEntries(shown), unsure };
}

const PINS = {
  7: [
    [3, "plans"],
    [1, "Lunch"],
  ],
  8: [],
  unsure: [],
};
const move = { type: "update_message", propagate_mode: "change_all", orig_subject: "plans" };

test.each([
  [
    "one more comes first",
    { type: "pins", op: "add", pin: pin(2, { pinned_at: 200 }) },
    { ...PINS, 7: [[2, "plans"], ...PINS[7]] },
  ],
  ["one twice is one", { type: "pins", op: "add", pin: pin(3) }, PINS],
  [
    "of a channel that nobody asked for nothing is known",
    { type: "pins", op: "add", pin: pin(2, { stream_id: 9 }) },
    PINS,
  ],
  ["one is taken away", { type: "pins", op: "remove", pin: pin(3) }, { ...PINS, 7: [PINS[7][1]] }],
  [
    "they go with their messages",
    { type: "delete_message", message_ids: [1, 2] },
    { ...PINS, 7: [PINS[7][0]] },
  ],
  [
    "they follow to another topic",
    { ...move, stream_id: 7, message_ids: [3], subject: "done" },
    { ...PINS, 7: [[3, "done"], PINS[7][1]] },
  ],
  [
    "and to another channel, which is asked for again",
    { ...move, stream_id: 7, new_stream_id: 8, message_ids: [3] },
    { 7: [PINS[7][1]], 8: [], unsure: [8] },
  ],
  [
    "where none of those that moved is pinned nothing is asked for",
    { ...move, stream_id: 7, new_stream_id: 8, message_ids: [5] },
    PINS,
  ],
  [
    "out of a channel whose pins are not known any may have come",
    { ...move, stream_id: 9, new_stream_id: 7, message_ids: [5] },
    { ...PINS, unsure: [7] },
  ],
  ["an edit moves nothing", { type: "update_message", stream_id: 7, message_ids: [3] }, PINS],
  [
    "who comes or goes sees others",
    { type: "subscription", op: "remove", subscriptions: [{ stream_id: 8 }, { stream_id: 9 }] },
    { ...PINS, unsure: [8] },
  ],
  [
    "so does everybody when a history opens",
    { type: "stream", op: "update", stream_id: 7, property: "history_public_to_subscribers" },
    { ...PINS, unsure: [7] },
  ],
])("%s", (_, event, expected) => {
  expect(after(event)).toEqual(expected);
});

test("a topic's pins are found regardless of case", () => {
  const pins = known.get(7)!;
  expect(pinsIn(pins, "lunch").map((pin) => pin.message_id)).toEqual([1]);
  expect(pinsIn(pins, null)).toBe(pins);
});
