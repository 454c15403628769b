import type { GroupSetting, UserGroup } from "../wire/objects";
import type { Data } from "./data";
import { holds } from "./permissions";

/** All members of a group and its subgroups, each once. */
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

/** The fragment of the group's page; the name of a tab may follow. */
export function groupPage({ id, name }: Pick<UserGroup, "id" | "name">): string {
  return `groups/${id}/${encodeURIComponent(name.replaceAll(" ", "-"))}`;
}

type Known = Pick<Data, "groups" | "me" | "users" | "realm">;

export interface GroupRights {
  manage: boolean;
  add: boolean;
  remove: boolean;
  join: boolean;
  leave: boolean;
}

const NOTHING: GroupRights = {
  manage: false,
  add: false,
  remove: false,
  join: false,
  leave: false,
};

export function rightsOver(data: Known, group: UserGroup): GroupRights {
  const self = data.users.get(data.me);
  if (group.is_system_group || !self || self.is_guest) return NOTHING;
  const has = (setting: GroupSetting | undefined) => holds(data.groups, setting, data.me);
  const manage =
    has(data.realm["realm_can_manage_all_groups"] as GroupSetting | undefined) ||
    has(group.can_manage_group);
  const add = manage || has(group.can_add_members_group);
  const remove = manage || has(group.can_remove_members_group);
  const isIn = group.members.includes(data.me);
  return {
    manage,
    add: add && !group.deactivated,
    remove: remove && !group.deactivated,
    join: !isIn && !group.deactivated && (add || has(group.can_join_group)),
    leave: isIn && !group.deactivated && (remove || has(group.can_leave_group)),
  };
}
