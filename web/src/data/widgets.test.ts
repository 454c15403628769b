import { describe, expect, it } from "vitest";
import type { Submessage } from "../wire/objects";
import { nextIndex, widgetOf, listMessage } from "./widgets";

let next = 1;
function part(sender_id: number, content: unknown): Submessage {
  return {
    id: next++,
    message_id: 1,
    sender_id,
    msg_type: "widget",
    content: JSON.stringify(content),
  };
}

const poll = part(4, {
  widget_type: "poll",
  extra_data: { question: "Which?", options: ["tea", "coffee"] },
});
const todo = part(4, {
  widget_type: "todo",
  extra_data: { task_list_title: "Today", tasks: [{ task: "sweep", desc: "well" }] },
});

describe("widgets", () => {
  it("don't exist in ordinary messages", () => {
    expect(widgetOf([], 4)).toBeNull();
    expect(widgetOf([{ ...poll, content: "{" }], 4)).toBeNull();
  });

  it("count votes and accept options from everyone", () => {
    const widget = widgetOf(
      [
        poll,
        part(5, { type: "vote", key: "canned,1", vote: 1 }),
        part(6, { type: "vote", key: "canned,1", vote: 1 }),
        part(6, { type: "vote", key: "canned,1", vote: -1 }),
        part(5, { type: "new_option", option: "water", idx: 1 }),
        part(6, { type: "new_option", option: "tea", idx: 1 }),
        part(5, { type: "question", question: "Not mine" }),
      ],
      4,
    );
    expect(widget).toEqual({
      kind: "poll",
      question: "Which?",
      options: [
        { key: "canned,0", text: "tea", votes: new Set() },
        { key: "canned,1", text: "coffee", votes: new Set([5]) },
        { key: "5,1", text: "water", votes: new Set() },
      ],
    });
  });

  it("check and uncheck tasks", () => {
    const strike = part(5, { type: "strike", key: "canned,0" });
    const more = part(5, { type: "new_task", key: 2, task: "mop", desc: "", completed: false });
    expect(widgetOf([todo, strike, more], 4)).toEqual({
      kind: "todo",
      title: "Today",
      tasks: [
        { key: "canned,0", text: "sweep", note: "well", done: true },
        { key: "5,2", text: "mop", note: "", done: false },
      ],
    });
    const again = widgetOf([todo, strike, strike], 4);
    expect(again?.kind === "todo" && again.tasks[0]?.done).toBe(false);
  });

  it("number new options", () => {
    expect(nextIndex(["canned,5", "4,2", "5,9"], 4)).toBe(3);
    expect(nextIndex([], 4)).toBe(1);
  });
});

it("write polls and lists", () => {
  expect(listMessage("poll", " Tea or\ncoffee? ", ["tea", "", " coffee "])).toBe(
    "/poll Tea or coffee?\ntea\ncoffee",
  );
  expect(listMessage("todo", "", ["bake"])).toBe("/todo\nbake");
});
