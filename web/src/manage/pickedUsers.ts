/** User IDs for keys of users, groups, and channels. */

import type { Data } from "../data/data";
import { membersOf } from "../data/groups";
import { idsIn } from "../settings/form/pickerOptions";
import { get } from "../wire/http";

export async function pickedUsers(
  groups: Data["groups"],
  keys: readonly string[],
): Promise<number[]> {
  const picked = new Set(idsIn(keys, "u"));
  for (const id of idsIn(keys, "g")) for (const userId of membersOf(groups, id)) picked.add(userId);
  for (const id of idsIn(keys, "c")) {
    const { subscribers } = await get<{ subscribers: number[] }>(`/streams/${id}/members`);
    for (const userId of subscribers) picked.add(userId);
  }
  return [...picked];
}
