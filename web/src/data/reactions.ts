import type { Reaction } from "../wire/objects";
import type { Emoji } from "./emoji";

export interface Chip {
  emoji: Emoji;
  people: readonly number[];
  mine: boolean;
}

/** Reactions grouped by emoji, in the order they were first used. */
export function reactionsOf(reactions: readonly Reaction[], me: number): Chip[] {
  const found = new Map<string, { emoji: Emoji; people: number[]; mine: boolean }>();
  for (const one of reactions) {
    const name = `${one.reaction_type} ${one.emoji_code}`;
    let chip = found.get(name);
    if (!chip) {
      const emoji = { name: one.emoji_name, code: one.emoji_code, type: one.reaction_type };
      found.set(name, (chip = { emoji, people: [], mine: false }));
    }
    chip.people.push(one.user_id);
    if (one.user_id === me) chip.mine = true;
  }
  return [...found.values()];
}
