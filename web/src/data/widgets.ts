/** Polls and to-do lists after all submessages. */

import type { Submessage } from "../wire/objects";

export interface PollOption {
  key: string;
  text: string;
  votes: ReadonlySet<number>;
}

export interface Poll {
  kind: "poll";
  question: string;
  options: readonly PollOption[];
}

interface Task {
  key: string;
  text: string;
  note: string;
  done: boolean;
}

export interface Todo {
  kind: "todo";
  title: string;
  tasks: readonly Task[];
}

interface Choices {
  kind: "choices";
  heading: string;
  choices: readonly { short: string; text: string; reply: string }[];
}

export type Widget = Poll | Todo | Choices;

type Json = Record<string, unknown>;

function parsed(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Json) : null;
  } catch {
    // Shown as text.
    return null;
  }
}

const text = (value: unknown) => (typeof value === "string" ? value : "");
/** Part of a key from a number or text; other values may not even convert to text. */
const keyed = (value: unknown) => (typeof value === "number" ? String(value) : text(value));
const list = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : []);

/** The widget of a message's submessages; null for an ordinary message. */
export function widgetOf(submessages: readonly Submessage[], author: number): Widget | null {
  const widgets = submessages.filter((part) => part.msg_type === "widget");
  const first = widgets[0] && parsed(widgets[0].content);
  if (!first) return null;
  const extra = (first["extra_data"] ?? {}) as Json;
  const rest = widgets.slice(1);
  switch (first["widget_type"]) {
    case "poll":
      return pollOf(extra, rest, author);
    case "todo":
      return todoOf(extra, rest, author);
    case "zform":
      return choicesOf(extra);
    default:
      return null;
  }
}

function pollOf(extra: Json, rest: readonly Submessage[], author: number): Poll {
  let question = text(extra["question"]);
  const options = new Map<string, { text: string; votes: Set<number> }>();
  const add = (key: string, option: string) => {
    const isNew = ![...options.values()].some((other) => other.text === option);
    if (option && isNew && !options.has(key)) options.set(key, { text: option, votes: new Set() });
  };
  list(extra["options"]).forEach((option, at) => add(`canned,${at}`, text(option)));
  for (const part of rest) {
    const done = parsed(part.content);
    if (done?.["type"] === "new_option") {
      add(`${part.sender_id},${keyed(done["idx"])}`, text(done["option"]));
    } else if (done?.["type"] === "question") {
      if (part.sender_id === author) question = text(done["question"]);
    } else if (done?.["type"] === "vote") {
      const votes = options.get(text(done["key"]))?.votes;
      if (done["vote"] === 1) votes?.add(part.sender_id);
      else votes?.delete(part.sender_id);
    }
  }
  return {
    kind: "poll",
    question,
    options: [...options].map(([key, option]) => ({ key, ...option })),
  };
}

function todoOf(extra: Json, rest: readonly Submessage[], author: number): Todo {
  let title = text(extra["task_list_title"]);
  const tasks = new Map<string, { text: string; note: string; done: boolean }>();
  const add = (key: string, task: Json) => {
    const name = text(task["task"]);
    if (!name || tasks.has(key)) return;
    tasks.set(key, { text: name, note: text(task["desc"]), done: task["completed"] === true });
  };
  list(extra["tasks"]).forEach((task, at) => add(`canned,${at}`, (task ?? {}) as Json));
  for (const part of rest) {
    const done = parsed(part.content);
    if (done?.["type"] === "new_task") add(`${part.sender_id},${keyed(done["key"])}`, done);
    else if (done?.["type"] === "new_task_list_title") {
      if (part.sender_id === author) title = text(done["title"]);
    } else if (done?.["type"] === "strike") {
      const task = tasks.get(text(done["key"]));
      if (task) task.done = !task.done;
    }
  }
  return { kind: "todo", title, tasks: [...tasks].map(([key, task]) => ({ key, ...task })) };
}

function choicesOf(extra: Json): Choices | null {
  if (extra["type"] !== "choices") return null;
  return {
    kind: "choices",
    heading: text(extra["heading"]),
    choices: list(extra["choices"]).map((value) => {
      const choice = (value ?? {}) as Json;
      return {
        short: text(choice["short_name"]),
        text: text(choice["long_name"]),
        reply: text(choice["reply"]),
      };
    }),
  };
}

/** An index that the user hasn't used yet for an option or task. */
export function nextIndex(keys: Iterable<string>, me: number): number {
  let next = 1;
  for (const key of keys) {
    const [by, index] = key.split(",");
    if (Number(by) === me) next = Math.max(next, Number(index) + 1);
  }
  return next;
}

/** The message that creates a poll or to-do list: a command with the title, then one option per
 * line. */
export function listMessage(
  kind: "poll" | "todo",
  title: string,
  lines: readonly string[],
): string {
  const oneLine = (text: string) => text.replace(/\s+/g, " ").trim();
  const points = lines.map(oneLine).filter(Boolean);
  return [`/${kind} ${oneLine(title)}`.trimEnd(), ...points].join("\n");
}
