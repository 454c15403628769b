import { expect, test } from "vitest";
import { reminderNote } from "./reminders";

test.each([
  ["a note", "Here: [link](/x). Your note:\n``` quote\nPage 3\n```", "Page 3"],
  ["a note with a fence", "Your note:\n```` quote\nPage 3\n```\n````", "Page 3\n```"],
  ["no note", "You asked for a reminder of a message.", ""],
])("finds %s", (_, content, note) => expect(reminderNote({ content })).toBe(note));
