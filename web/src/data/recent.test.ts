import { describe, expect, it } from "vitest";
import type { Message } from "./data";
import { afterEdit, latestMessages, afterMove, recentMessage, type RecentMessage } from "./recent";

const words = { text: "", sign: null };
const SEEN: RecentMessage[] = [
  { id: 3, key: "c7/a", sender: 2, at: 30, words, acts: false },
  { id: 1, key: "c7/a", sender: 1, at: 10, words, acts: false },
  { id: 2, key: "c7/a", sender: 2, at: 20, words, acts: false },
  { id: 5, key: "d2", sender: 2, at: 50, words, acts: false },
];
const seen = new Map(SEEN.map((message) => [message.id, message]));

const message = (more: object) =>
  recentMessage({
    id: 9,
    key: "d2",
    sender_id: 2,
    timestamp: 90,
    content: "<p>So</p>",
    is_me_message: false,
    submessages: [],
    ...more,
  } as unknown as Message);

describe("recent conversations", () => {
  it("have the last sender, and whether the user participated", () => {
    const latest = latestMessages(SEEN, 1);
    expect([...latest].map(([key, { last, mine }]) => [key, last.id, mine])).toEqual([
      ["c7/a", 3, true],
      ["d2", 5, false],
    ]);
  });

  it("have the text, action, or question", () => {
    expect(message({}).words.text).toBe("So");
    expect(message({ content: "<p>/me waves</p>", is_me_message: true })).toMatchObject({
      words: { text: "waves" },
      acts: true,
    });
    const poll = JSON.stringify({
      widget_type: "poll",
      extra_data: { question: "When?", options: [] },
    });
    const parts = [{ id: 1, message_id: 9, sender_id: 2, msg_type: "widget", content: poll }];
    expect(message({ submessages: parts }).words).toEqual({ text: "When?", sign: "poll" });
  });

  it("follow moved and edited messages", () => {
    const after = afterMove(seen, [3, 77], 7, "B");
    expect(after.get(3)?.key).toBe("c7/b");
    expect(after.size).toBe(SEEN.length);
    expect(afterEdit(seen, 3, "<p>No</p>", false).get(3)?.words.text).toBe("No");
    expect(afterEdit(seen, 77, "<p>No</p>", false)).toBe(seen);
  });
});
