/** Polls and lists of things to do, as they are written. Pure. */

/** The message that makes one: a command and a title, and a line for each point. */
export function listMessage(
  kind: "poll" | "todo",
  title: string,
  lines: readonly string[],
): string {
  const one = (text: string) => text.replace(/\s+/g, " ").trim();
  const points = lines.map(one).filter(Boolean);
  return [`/${kind} ${one(title)}`.trimEnd(), ...points].join("\n");
}
