/** Groups of people. */

import type { UserGroup } from "../wire/objects";

/** Everybody in a group, and in the groups of it, each once. */
export function membersOf(groups: ReadonlyMap<number, UserGroup>, id: number): number[] {
  const found = new Set<number>();
  const seen = new Set<number>();
  const visit = (one: number) => {
    const group = groups.get(one);
    if (!group || group.deactivated || seen.has(one)) return;
    seen.add(one);
    for (const member of group.members) found.add(member);
    group.direct_subgroup_ids.forEach(visit);
  };
  visit(id);
  return [...found];
}
