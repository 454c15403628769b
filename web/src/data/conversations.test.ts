import { expect, test } from "vitest";
import { moveTarget, wholeMove } from "./conversations";

const move = { id: 1, type: "update_message", stream_id: 7, orig_subject: "plans" };

test("recognizes moves of a whole topic", () => {
  const from = "c7/plans";
  const all = { ...move, propagate_mode: "change_all" };
  expect(wholeMove({ ...all, subject: "✔ plans" })).toEqual({
    from,
    to: { kind: "topic", channelId: 7, topic: "✔ plans" },
  });
  expect(wholeMove({ ...all, new_stream_id: 8 })).toEqual({
    from,
    to: { kind: "topic", channelId: 8, topic: "plans" },
  });
  const some = { ...move, propagate_mode: "change_later", subject: "done" };
  expect(wholeMove(some)).toBeNull();
  expect(moveTarget(some)).toEqual({ kind: "topic", channelId: 7, topic: "done" });
  expect(wholeMove({ ...move, content: "edited" })).toBeNull();
  expect(moveTarget({ ...move, content: "edited" })).toBeNull();
  expect(wholeMove({ ...all, type: "message" })).toBeNull();
});
