import { Role, type AnonymousGroup, type GroupSetting, type UserGroup } from "../wire/objects";
import type { Data } from "./data";

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
export const SYSTEM_GROUPS = [
  "role:everyone",
  "role:members",
  "role:fullmembers",
  "role:moderators",
  "role:administrators",
  "role:owners",
  "role:nobody",
] as const;

export function ruleOf(
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
export function keysOf(groups: Data["groups"], setting: GroupSetting): string[] {
  if (typeof setting === "number") {
    return groups.get(setting)?.name === "role:nobody" ? [] : [`g${setting}`];
  }
  return [
    ...setting.direct_subgroups.map((id) => `g${id}`),
    ...setting.direct_members.map((id) => `u${id}`),
  ];
}

/** The setting for keys. A single group is stored as its ID. */
export function settingOf(keys: readonly string[]): GroupSetting {
  const ids = (kind: string) =>
    keys.filter((key) => key.startsWith(kind)).map((key) => Number(key.slice(1)));
  const found: AnonymousGroup = { direct_members: ids("u"), direct_subgroups: ids("g") };
  const [only] = found.direct_subgroups;
  return keys.length === 1 && only !== undefined ? only : found;
}

export function isSame(one: GroupSetting, other: GroupSetting): boolean {
  const sorted = (setting: GroupSetting) =>
    typeof setting === "number"
      ? String(setting)
      : JSON.stringify([
          [...setting.direct_members].sort((a, b) => a - b),
          [...setting.direct_subgroups].sort((a, b) => a - b),
        ]);
  return sorted(one) === sorted(other);
}

/** Roles that the user may assign: none above their own. */
export function rolesToGive(own: number): number[] {
  const all = [Role.owner, Role.admin, Role.moderator, Role.member, Role.guest];
  return all.filter((role) => role >= own || (role > Role.admin && own <= Role.admin));
}
