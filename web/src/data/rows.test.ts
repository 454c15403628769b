import { describe, expect, it } from "vitest";
import type { Message } from "./data";
import { agentOf, Heights, rowsOf, type RowsOptions } from "./rows";

const NOON = new Date(2025, 3, 3, 12).getTime() / 1000;
const OPTIONS: RowsOptions = { mixed: false, marker: null, mutedUsers: new Set([9]) };

function message(id: number, sender_id: number, timestamp: number, more: Partial<Message> = {}) {
  return { id, sender_id, timestamp, key: "c1/x", is_me_message: false, ...more } as Message;
}

function rows(messages: Message[], options: Partial<RowsOptions> = {}, start = 0) {
  const ids = messages.map((message) => message.id);
  const known = new Map(messages.map((message) => [message.id, message]));
  return rowsOf(ids, known, start, ids.length, { ...OPTIONS, ...options });
}

describe("rows", () => {
  it("group one sender's messages within ten minutes", () => {
    const list = rows([
      message(1, 5, NOON),
      message(2, 5, NOON + 599),
      message(3, 6, NOON + 600),
      message(4, 6, NOON + 1300),
    ]);
    expect(list.map((row) => row.first)).toEqual([true, false, true, true]);
  });

  it("separate an agent's messages from its owner's", () => {
    const list = rows([
      message(1, 5, NOON, { client: "website" }),
      message(2, 5, NOON, { client: "agent Helper" }),
      message(3, 5, NOON, { client: "agent Helper" }),
      message(4, 5, NOON, { client: "agent Cook" }),
    ]);
    expect(list.map((row) => row.first)).toEqual([true, true, false, true]);
    expect(list.map((row) => agentOf(row.message))).toEqual(["", "Helper", "Helper", "Cook"]);
  });

  it("begin each day, even after an unrequested row", () => {
    const messages = [message(1, 5, NOON), message(2, 5, NOON + 60), message(3, 5, NOON + 86_400)];
    expect(rows(messages).map((row) => row.day !== null)).toEqual([true, false, true]);
    expect(rows(messages, {}, 1).map((row) => row.day !== null)).toEqual([false, true]);
    expect(rows(messages, {}, 1)[0]?.first).toBe(false);
  });

  it("name the conversation only if the list mixes several", () => {
    const messages = [
      message(1, 5, NOON),
      message(2, 5, NOON, { key: "c1/y" }),
      message(3, 5, NOON),
    ];
    expect(rows(messages).every((row) => row.conversation === null)).toBe(true);
    expect(rows(messages, { mixed: true }).map((row) => row.conversation)).toEqual([
      "c1/x",
      "c1/y",
      "c1/x",
    ]);
  });

  it("mark unread and muted messages, and skip unknown ones", () => {
    const list = rows([message(1, 9, NOON), message(2, 9, NOON)], { marker: 2 });
    expect(list.map((row) => [row.marker, row.first, row.muted])).toEqual([
      [false, true, true],
      [true, true, true],
    ]);
    expect(rowsOf([1, 2], new Map(), 0, 2, OPTIONS)).toEqual([]);
  });

  it("keep the objects of rows that are the same as before", () => {
    const known = new Map([1, 2, 3].map((id) => [id, message(id, 5, NOON)]));
    const before = rowsOf([1, 2], known, 0, 2, OPTIONS);
    const after = rowsOf([1, 2, 3], known, 0, 3, { ...OPTIONS, marker: 2 }, before);
    expect(after).toHaveLength(3);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
    expect(after[1]?.marker).toBe(true);
  });
});

describe("heights", () => {
  it("are estimated from measured ones", () => {
    const heights = new Heights();
    heights.set(1, 40);
    heights.set(2, 60);
    heights.set(2, 80);
    expect(heights.between([1, 2, 3], 0, 3)).toBe(180);
    expect(heights.at([1, 2, 3], 0)).toBe(0);
    expect(heights.at([1, 2, 3], 119)).toBe(1);
    expect(heights.at([1, 2, 3], 1000)).toBe(2);
  });
});
