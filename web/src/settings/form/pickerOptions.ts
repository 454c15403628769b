/** People, groups, and channels as Picker options. */

import type { Channel, Data } from "../../data/data";
import { normalized } from "../../data/matching";
import { byNames } from "../../data/peopleList";
import type { Option } from "../../ui/options";
import type { User, UserGroup } from "../../wire/objects";
import { words } from "../../words/index.svelte";

/** A group's name; system groups are translated. */
export function groupName(group: UserGroup): string {
  const names: Record<string, string> = words.manage.systemGroups;
  return names[group.name] ?? group.name;
}

const collators = new Map<string, Intl.Collator>();

/** A comparison in the user's language; a stable function. */
function comparing(): (a: string, b: string) => number {
  const { language } = words;
  let collator = collators.get(language);
  if (!collator) {
    collator = new Intl.Collator(language, { numeric: true });
    collators.set(language, collator);
  }
  return collator.compare;
}

export function byName(a: string, b: string): number {
  return comparing()(a, b);
}

/** Everyone by name, bots and deactivated users included. */
export function usersByName(users: Data["users"]): readonly User[] {
  return byNames(users, comparing());
}

/** Active people, optionally with bots. Keys are `u5`. */
export function peopleOptions(users: Data["users"], withBots = false): Option[] {
  return usersByName(users)
    .filter((user) => user.is_active !== false && (withBots || !user.is_bot) && !user.is_system_bot)
    .map((user) => ({
      key: `u${user.user_id}`,
      label: user.full_name,
      detail: user.is_bot ? words.settings.bot : (user.delivery_email ?? ""),
    }));
}

/** Active groups. Keys are `g9`. */
export function groupOptions(
  groups: Data["groups"],
  isOffered: (group: UserGroup) => boolean = () => true,
): Option[] {
  return [...groups.values()]
    .filter((group) => !group.deactivated && group.name !== "role:nobody" && isOffered(group))
    .map((group) => ({
      key: `g${group.id}`,
      label: groupName(group),
      detail: words.manage.groupLabel,
    }));
}

/** Channels that aren't archived. Keys are `c7`. */
export function channelOptions(
  channels: Data["channels"],
  isOffered: (channel: Channel) => boolean = () => true,
): Option[] {
  return [...channels.values()]
    .filter((channel) => !channel.is_archived && isOffered(channel))
    .map((channel) => ({ key: `c${channel.stream_id}`, label: channel.name }))
    .sort((a, b) => byName(a.label, b.label));
}

/** The IDs in keys of one kind. */
export function idsIn(keys: readonly string[], kind: "u" | "g" | "c"): number[] {
  return keys.filter((key) => key.startsWith(kind)).map((key) => Number(key.slice(1)));
}

/** Items that match a query in any of their texts. */
export function matchingItems<T>(
  items: readonly T[],
  query: string,
  texts: (item: T) => (string | null | undefined)[],
): T[] {
  const searchText = normalized(query.trim());
  return searchText
    ? items.filter((item) =>
        texts(item).some((text) => text && normalized(text).includes(searchText)),
      )
    : [...items];
}
