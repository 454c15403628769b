import { expect, test } from "vitest";
import { Role, type User, type UserGroup } from "../wire/objects";
import { membersOf, rightsOver } from "./groups";

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

test("a member may leave where that is allowed, and nothing more", () => {
  expect(rightsOver(data(1), bakers)).toEqual({
    manage: false,
    add: false,
    remove: false,
    join: false,
    leave: true,
  });
});

test("who manages all groups may do everything, except with those of the system", () => {
  expect(rightsOver(data(9), bakers)).toMatchObject({ manage: true, add: true, join: true });
  expect(rightsOver(data(9), { ...bakers, is_system_group: true }).manage).toBe(false);
});

test("a deactivated group can only be managed; guests manage nothing", () => {
  expect(rightsOver(data(9), { ...bakers, deactivated: true })).toMatchObject({
    manage: true,
    add: false,
    join: false,
  });
  expect(rightsOver(data(9, Role.guest), bakers).manage).toBe(false);
});

test("everybody in a group, through groups that hold each other", () => {
  const group = (id: number, members: number[], direct_subgroup_ids: number[]) =>
    [id, { id, members, direct_subgroup_ids } as unknown as UserGroup] as const;
  const groups = new Map([group(1, [5], [2]), group(2, [6, 5], [1])]);
  expect(membersOf(groups, 1)).toEqual([5, 6]);
});
