/** The message that creates a poll or to-do list: a command with the title, then one option per
 * line. */
export function listMessage(
  kind: "poll" | "todo",
  title: string,
  lines: readonly string[],
): string {
  const one = (text: string) => text.replace(/\s+/g, " ").trim();
  const points = lines.map(one).filter(Boolean);
  return [`/${kind} ${one(title)}`.trimEnd(), ...points].join("\n");
}
