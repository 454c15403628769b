import { expect, test } from "vitest";
import { Role, type User, type UserGroup } from "../wire/objects";
import {
  membersOf,
  rightsOver,
  allowedSystemGroups,
  settingKeys,
  assignableRoles,
  settingFromKeys,
  type PermissionRule,
} from "./groups";

const nobody = { id: 1, members: [], direct_subgroup_ids: [] } as unknown as UserGroup;
const owners = { id: 2, members: [9], direct_subgroup_ids: [] } as unknown as UserGroup;
const bakers = {
  id: 3,
  members: [1],
  direct_subgroup_ids: [],
  is_system_group: false,
  deactivated: false,
  can_manage_group: 1,
  can_add_members_group: 1,
  can_remove_members_group: 1,
  can_join_group: 1,
  can_leave_group: { direct_members: [1], direct_subgroups: [] },
} as unknown as UserGroup;
const data = (me: number, role: number = Role.member) => ({
  me,
  groups: new Map([nobody, owners, bakers].map((group) => [group.id, group])),
  users: new Map([[me, { user_id: me, role, is_guest: role === Role.guest } as User]]),
  realm: { realm_can_manage_all_groups: 2 },
});

test("members can leave if allowed, and nothing else", () => {
  expect(rightsOver(data(1), bakers)).toEqual({
    manage: false,
    add: false,
    remove: false,
    join: false,
    leave: true,
  });
});

test("people who manage all groups can do everything except with system groups", () => {
  expect(rightsOver(data(9), bakers)).toMatchObject({ manage: true, add: true, join: true });
  expect(rightsOver(data(9), { ...bakers, is_system_group: true }).manage).toBe(false);
});

test("a deactivated group can only be managed, and guests manage nothing", () => {
  expect(rightsOver(data(9), { ...bakers, deactivated: true })).toMatchObject({
    manage: true,
    add: false,
    join: false,
  });
  expect(rightsOver(data(9, Role.guest), bakers).manage).toBe(false);
});

test("finds all members through nested groups", () => {
  const group = (id: number, members: number[], direct_subgroup_ids: number[]) =>
    [id, { id, members, direct_subgroup_ids } as unknown as UserGroup] as const;
  const groups = new Map([group(1, [5], [2]), group(2, [6, 5], [1])]);
  expect(membersOf(groups, 1)).toEqual([5, 6]);
});

const names = [
  "role:nobody",
  "role:owners",
  "role:administrators",
  "role:members",
  "role:everyone",
];
const groups = new Map(
  [...names, "bakers"].map((name, id) => [id, { id, name } as unknown as UserGroup]),
);
const rule: PermissionRule = {
  default_group_name: "role:members",
  allow_everyone_group: false,
  allow_nobody_group: true,
  allow_internet_group: false,
  require_system_group: false,
  allowed_system_groups: [],
};

test("a rule lists the allowed system groups", () => {
  const offered = (more: Partial<PermissionRule>) =>
    allowedSystemGroups(groups, { ...rule, ...more }).map((group) => group.name);
  expect(offered({})).toEqual([
    "role:members",
    "role:administrators",
    "role:owners",
    "role:nobody",
  ]);
  expect(offered({ allow_everyone_group: true, allow_nobody_group: false })[0]).toBe(
    "role:everyone",
  );
  expect(offered({ allowed_system_groups: ["role:everyone", "role:members"] })).toEqual([
    "role:everyone",
    "role:members",
  ]);
});

test("a setting survives conversion to keys and back", () => {
  expect(settingKeys(groups, 0)).toEqual([]);
  expect(settingKeys(groups, 5)).toEqual(["g5"]);
  const custom = { direct_members: [7], direct_subgroups: [5] };
  expect(settingKeys(groups, custom)).toEqual(["g5", "u7"]);
  expect(settingFromKeys(["g5", "u7"])).toEqual(custom);
  expect(settingFromKeys(["g5"])).toBe(5);
  expect(settingFromKeys(["u7"])).toEqual({ direct_members: [7], direct_subgroups: [] });
});

test("can't assign a role above the user's own", () => {
  expect(assignableRoles(100)).toEqual([100, 200, 300, 400, 600]);
  expect(assignableRoles(200)).toEqual([200, 300, 400, 600]);
  expect(assignableRoles(400)).toEqual([400, 600]);
});
