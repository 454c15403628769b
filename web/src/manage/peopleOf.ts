/** The people whom keys name: themselves, the members of groups, the subscribers of channels. */

import type { Data } from "../data/data";
import { idsIn } from "../settings/form/options";
import { get } from "../wire/http";

/** Everybody in a group and in the groups of it. */
export function membersOf(
  groups: Data["groups"],
  id: number,
  seen: Set<number> = new Set(),
): Set<number> {
  const group = groups.get(id);
  if (!group || seen.has(id)) return new Set();
  seen.add(id);
  return new Set([
    ...group.members,
    ...group.direct_subgroup_ids.flatMap((one) => [...membersOf(groups, one, seen)]),
  ]);
}

export async function peopleOf(groups: Data["groups"], keys: readonly string[]): Promise<number[]> {
  const found = new Set(idsIn(keys, "u"));
  for (const id of idsIn(keys, "g")) for (const one of membersOf(groups, id)) found.add(one);
  for (const id of idsIn(keys, "c")) {
    const { subscribers } = await get<{ subscribers: number[] }>(`/streams/${id}/members`);
    for (const one of subscribers) found.add(one);
  }
  return [...found];
}
