import type { Reminder } from "../wire/objects";

/** The note of a reminder, which its text quotes at the end; empty without one. */
export function reminderNote({ content }: Pick<Reminder, "content">): string {
  return /\n(`{3,}) ?quote\n([^]*)\n\1\s*$/.exec(content)?.[2] ?? "";
}
