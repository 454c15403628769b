import { type GroupSetting, type UserGroup, Role, type AnonymousGroup } from "../wire/objects";
import type { Data } from "./data";
import { hasPermission } from "./permissions";

/** All members of a group and its subgroups, each once. */
export function membersOf(groups: ReadonlyMap<number, UserGroup>, id: number): number[] {
  const groupIds = new Set<number>();
  const seen = new Set<number>();
  const visit = (groupId: number) => {
    const group = groups.get(groupId);
    if (!group || group.deactivated || seen.has(groupId)) return;
    seen.add(groupId);
    for (const member of group.members) groupIds.add(member);
    group.direct_subgroup_ids.forEach(visit);
  };
  visit(id);
  return [...groupIds];
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
  const has = (setting: GroupSetting | undefined) => hasPermission(data.groups, setting, data.me);
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

/** Groups that a permission accepts, from `server_supported_permission_settings`. */
export interface PermissionRule {
  default_group_name: string;
  allow_everyone_group: boolean;
  allow_nobody_group: boolean;
  allow_internet_group: boolean;
  require_system_group: boolean;
  allowed_system_groups: string[];
}

/** From the largest to the smallest. */
const SYSTEM_GROUPS = [
  "role:everyone",
  "role:members",
  "role:fullmembers",
  "role:moderators",
  "role:administrators",
  "role:owners",
  "role:nobody",
] as const;

export function permissionRule(
  realm: Data["realm"],
  kind: "realm" | "stream" | "group",
  name: string,
): PermissionRule | undefined {
  const all = realm["server_supported_permission_settings"] as
    Record<string, Record<string, PermissionRule>> | undefined;
  return all?.[kind]?.[name];
}

/** System groups that a rule accepts, from the largest to the smallest. */
export function allowedSystemGroups(groups: Data["groups"], rule: PermissionRule): UserGroup[] {
  const byName = new Map([...groups.values()].map((group) => [group.name, group]));
  return SYSTEM_GROUPS.filter((name) => {
    if (rule.allowed_system_groups.length) return rule.allowed_system_groups.includes(name);
    if (name === "role:everyone") return rule.allow_everyone_group;
    if (name === "role:nobody") return rule.allow_nobody_group;
    return true;
  }).flatMap((name) => byName.get(name) ?? []);
}

/** The groups and users of a setting as keys such as `u5` and `g9`. */
export function settingKeys(groups: Data["groups"], setting: GroupSetting): string[] {
  if (typeof setting === "number") {
    return groups.get(setting)?.name === "role:nobody" ? [] : [`g${setting}`];
  }
  return [
    ...setting.direct_subgroups.map((id) => `g${id}`),
    ...setting.direct_members.map((id) => `u${id}`),
  ];
}

/** The setting for keys. A single group is stored as its ID. */
export function settingFromKeys(keys: readonly string[]): GroupSetting {
  const ids = (kind: string) =>
    keys.filter((key) => key.startsWith(kind)).map((key) => Number(key.slice(1)));
  const members: AnonymousGroup = { direct_members: ids("u"), direct_subgroups: ids("g") };
  const [only] = members.direct_subgroups;
  return keys.length === 1 && only !== undefined ? only : members;
}

/** Roles that the user may assign: none above their own. */
export function assignableRoles(ownRole: number): number[] {
  const all = [Role.owner, Role.admin, Role.moderator, Role.member, Role.guest];
  return all.filter((role) => role >= ownRole || (role > Role.admin && ownRole <= Role.admin));
}
