/** The writing tools that were used last, stored in this browser. They stay on the toolbar. */

import { LocalSetting } from "../live/storage.svelte";

/** How many tools a wide and a narrow toolbar show. */
export const SHOWN_TOOLS = { wide: 7, narrow: 2 } as const;

/** Names of tools, the last used first. */
const lately = new LocalSetting<readonly string[]>("tools", []);
const AT_FIRST = ["voice", "formatted", "bold", "italic", "link", "code", "preview"] as const;

/** Names in the order of their last use, then the usual ones. */
export function toolsByUse(): readonly string[] {
  const used: unknown = lately.value;
  const known = Array.isArray(used) ? used.filter((one) => typeof one === "string") : [];
  return [...new Set([...known, ...AT_FIRST])];
}

export function noteToolUse(name: string): void {
  const rest = toolsByUse().filter((one) => one !== name);
  lately.value = [name, ...rest].slice(0, SHOWN_TOOLS.wide);
}
