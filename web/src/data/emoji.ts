import type { RealmEmoji, Reaction } from "../wire/objects";

export interface Emoji {
  name: string;
  code: string;
  type: Reaction["reaction_type"];
  /** Custom emoji only. */
  picture?: string;
}

/** A Unicode emoji with all its names. */
export interface UnicodeEmoji {
  code: string;
  names: readonly string[];
}

/** Skin tone modifiers from light to dark; the first means none. */
export const TONES = ["", "\u{1f3fb}", "\u{1f3fc}", "\u{1f3fd}", "\u{1f3fe}", "\u{1f3ff}"] as const;
export type Tone = (typeof TONES)[number];

/** The emoji in a skin tone; null if it can't take one. */
export function withTone(emoji: Pick<Emoji, "code" | "type">, tone: Tone): string | null {
  if (emoji.type !== "unicode_emoji" || !tone) return null;
  const parts = emoji.code
    .split("-")
    .map((part) => String.fromCodePoint(Number.parseInt(part, 16)));
  if (parts.filter(showsSkin).length !== 1) return null;
  return parts
    .map((part) => {
      if (showsSkin(part)) return part + tone;
      return /[\u2600-\u27bf]/.test(part) ? `${part}\ufe0f` : part;
    })
    .join("");
}

/** Whether it takes a skin tone. Groups of people can't before Unicode 17. */
function showsSkin(character: string): boolean {
  return /\p{Emoji_Modifier_Base}/u.test(character) && !/[👪👯🤼]/u.test(character);
}

/** What is inserted for an emoji: `:name:`, or the character if it has a skin tone. */
export function emojiText(emoji: Emoji, tone: Tone): string {
  return withTone(emoji, tone) ?? `:${emoji.name}:`;
}

type EmojiGroup = "people" | "nature" | "food" | "places" | "objects" | "symbols" | "flags";

/** First code point of each range of a group, in order. */
const STRETCHES: readonly (readonly [number, EmojiGroup])[] = [
  [0x0, "symbols"],
  [0x2600, "nature"],
  [0x2605, "symbols"],
  [0x2615, "food"],
  [0x2616, "nature"],
  [0x261d, "people"],
  [0x2620, "symbols"],
  [0x2639, "people"],
  [0x263b, "symbols"],
  [0x2692, "objects"],
  [0x26c4, "nature"],
  [0x26c7, "objects"],
  [0x26e9, "places"],
  [0x2702, "objects"],
  [0x2705, "symbols"],
  [0x2708, "places"],
  [0x2709, "objects"],
  [0x270a, "people"],
  [0x270f, "objects"],
  [0x2714, "symbols"],
  [0x1f1e6, "flags"],
  [0x1f200, "symbols"],
  [0x1f300, "nature"],
  [0x1f32d, "food"],
  [0x1f330, "nature"],
  [0x1f345, "food"],
  [0x1f380, "objects"],
  [0x1f3c2, "people"],
  [0x1f3c5, "objects"],
  [0x1f3e0, "places"],
  [0x1f3f3, "flags"],
  [0x1f3f8, "objects"],
  [0x1f400, "nature"],
  [0x1f440, "people"],
  [0x1f47b, "people"],
  [0x1f484, "objects"],
  [0x1f485, "people"],
  [0x1f488, "objects"],
  [0x1f490, "nature"],
  [0x1f493, "symbols"],
  [0x1f4a0, "symbols"],
  [0x1f4a1, "objects"],
  [0x1f4a2, "symbols"],
  [0x1f4aa, "people"],
  [0x1f4ab, "symbols"],
  [0x1f4b0, "objects"],
  [0x1f500, "symbols"],
  [0x1f525, "nature"],
  [0x1f526, "objects"],
  [0x1f52f, "symbols"],
  [0x1f56f, "objects"],
  [0x1f574, "people"],
  [0x1f576, "objects"],
  [0x1f577, "nature"],
  [0x1f579, "objects"],
  [0x1f57a, "people"],
  [0x1f587, "objects"],
  [0x1f590, "people"],
  [0x1f5a5, "objects"],
  [0x1f5e3, "people"],
  [0x1f5e8, "symbols"],
  [0x1f5f3, "objects"],
  [0x1f5fa, "places"],
  [0x1f600, "people"],
  [0x1f680, "places"],
  [0x1f6a9, "flags"],
  [0x1f6aa, "objects"],
  [0x1f6ab, "symbols"],
  [0x1f6b2, "places"],
  [0x1f6b6, "people"],
  [0x1f6b9, "symbols"],
  [0x1f6c0, "people"],
  [0x1f6c1, "objects"],
  [0x1f6d0, "symbols"],
  [0x1f6d1, "places"],
  [0x1f7e0, "symbols"],
  [0x1f90c, "people"],
  [0x1f93f, "objects"],
  [0x1f940, "nature"],
  [0x1f941, "objects"],
  [0x1f950, "food"],
  [0x1f970, "people"],
  [0x1f97b, "objects"],
  [0x1f980, "nature"],
  [0x1f9c0, "food"],
  [0x1f9cd, "people"],
  [0x1f9e0, "people"],
  [0x1f9e1, "symbols"],
  [0x1f9e2, "objects"],
  [0x1fab0, "nature"],
  [0x1fac0, "people"],
  [0x1fad0, "food"],
  [0x1fae0, "people"],
];

export const GROUPS: readonly EmojiGroup[] = [
  "people",
  "nature",
  "food",
  "places",
  "objects",
  "symbols",
  "flags",
];

/** Approximate category, as in pickers. */
export function groupOf(code: string): EmojiGroup {
  const point = Number.parseInt(code, 16);
  let group: EmojiGroup = "symbols";
  for (const [first, emoji] of STRETCHES) {
    if (first > point) break;
    group = emoji;
  }
  return group;
}

export function inGroups(all: readonly UnicodeEmoji[]): Map<EmojiGroup, UnicodeEmoji[]> {
  const groups = new Map<EmojiGroup, UnicodeEmoji[]>(GROUPS.map((group) => [group, []]));
  // Faces come first.
  const isFace = (emoji: UnicodeEmoji) => /^1f6[0-4]|^1f9[17]/.test(emoji.code);
  for (const emoji of all) groups.get(groupOf(emoji.code))?.push(emoji);
  for (const members of groups.values()) {
    members.sort(
      (a, b) =>
        Number(isFace(b)) - Number(isFace(a)) ||
        Number.parseInt(a.code, 16) - Number.parseInt(b.code, 16),
    );
  }
  return groups;
}

/** Normalize a query like a name. */
function folded(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/^:|:$/g, "")
    .replace(/[\s-]+/g, "_");
}

/** How well a name matches: lower is better; null: not at all. */
export function emojiRank(name: string, needle: string): number | null {
  if (name === needle) return 0;
  if (name.startsWith(needle)) return 1;
  if (name.includes(`_${needle}`)) return 2;
  return name.includes(needle) ? 3 : null;
}

/** Emoji whose names match, best first; of equal ones, those used lately. */
export function searchEmoji(
  all: readonly UnicodeEmoji[],
  custom: readonly Emoji[],
  text: string,
  lately: readonly Emoji[] = [],
  limit = 120,
): Emoji[] {
  const needle = folded(text);
  const ranked: [number, number, Emoji][] = [];
  const uses = new Map(lately.map(({ code }, place) => [code, place]));
  const placeOf = ({ code }: Emoji) => uses.get(code) ?? uses.size;
  for (const emoji of custom) {
    const rank = emojiRank(emoji.name.toLowerCase(), needle);
    if (rank !== null) ranked.push([rank, 0, emoji]);
  }
  for (const { code, names } of all) {
    let best: number | null = null;
    for (const name of names) {
      const rank = emojiRank(name, needle);
      if (rank !== null && (best === null || rank < best)) best = rank;
    }
    if (best !== null) {
      ranked.push([
        best,
        names[0]?.length ?? 0,
        { name: names[0] ?? "", code, type: "unicode_emoji" },
      ]);
    }
  }
  ranked.sort((a, b) => a[0] - b[0] || placeOf(a[2]) - placeOf(b[2]) || a[1] - b[1]);
  return ranked.slice(0, limit).map(([, , emoji]) => emoji);
}

/** The organization's active custom emoji. */
export function ownEmoji(realm: ReadonlyMap<string, RealmEmoji>): Emoji[] {
  return [...realm.values()]
    .filter((emoji) => !emoji.deactivated)
    .map((emoji) => ({
      name: emoji.name,
      code: emoji.id,
      type: "realm_emoji" as const,
      picture: emoji.source_url,
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** The list of frequently used emoji after one more use. */
export function withUse(before: readonly Emoji[], emoji: Emoji, limit = 14): Emoji[] {
  const isSame = (other: Emoji) => other.code === emoji.code && other.type === emoji.type;
  return [emoji, ...before.filter((emoji) => !isSame(emoji))].slice(0, limit);
}

/** Stored emoji with their current names. */
export function withCurrentNames(kept: readonly Emoji[], all: readonly UnicodeEmoji[]): Emoji[] {
  const names = new Map(all.map((emoji) => [emoji.code, emoji.names]));
  return kept.map((emoji) => {
    const known = emoji.type === "unicode_emoji" ? names.get(emoji.code) : undefined;
    return known?.[0] && !known.includes(emoji.name) ? { ...emoji, name: known[0] } : emoji;
  });
}

export const THUMBS_UP: Emoji = { name: "+1", code: "1f44d", type: "unicode_emoji" };

/** Shown until the user has used some. */
export const FIRST_USED: readonly Emoji[] = [
  THUMBS_UP,
  { name: "heart", code: "2764", type: "unicode_emoji" },
  { name: "joy", code: "1f602", type: "unicode_emoji" },
  { name: "tada", code: "1f389", type: "unicode_emoji" },
  { name: "open_mouth", code: "1f62e", type: "unicode_emoji" },
  { name: "eyes", code: "1f440", type: "unicode_emoji" },
  { name: "check", code: "2705", type: "unicode_emoji" },
];

export interface ReactionChip {
  emoji: Emoji;
  people: readonly number[];
  mine: boolean;
}

/** Reactions grouped by emoji, in the order they were first used. */
export function reactionsOf(reactions: readonly Reaction[], me: number): ReactionChip[] {
  const chips = new Map<string, { emoji: Emoji; people: number[]; mine: boolean }>();
  for (const reaction of reactions) {
    const name = `${reaction.reaction_type} ${reaction.emoji_code}`;
    let chip = chips.get(name);
    if (!chip) {
      const emoji = {
        name: reaction.emoji_name,
        code: reaction.emoji_code,
        type: reaction.reaction_type,
      };
      chips.set(name, (chip = { emoji, people: [], mine: false }));
    }
    chip.people.push(reaction.user_id);
    if (reaction.user_id === me) chip.mine = true;
  }
  return [...chips.values()];
}
