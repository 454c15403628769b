import { expect, test } from "vitest";
import { wholeMove } from "./moves";

const move = { id: 1, type: "update_message", stream_id: 7, orig_subject: "plans" };

test("a topic goes elsewhere as a whole, or it does not", () => {
  const from = { channelId: 7, topic: "plans" };
  const all = { ...move, propagate_mode: "change_all" };
  expect(wholeMove({ ...all, subject: "✔ plans" })).toEqual({
    from,
    to: { channelId: 7, topic: "✔ plans" },
  });
  expect(wholeMove({ ...all, new_stream_id: 8 })).toEqual({
    from,
    to: { channelId: 8, topic: "plans" },
  });
  expect(wholeMove({ ...move, propagate_mode: "change_later", subject: "done" })).toBeNull();
  expect(wholeMove({ ...move, content: "edited" })).toBeNull();
  expect(wholeMove({ ...all, type: "message" })).toBeNull();
});
