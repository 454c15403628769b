import { expect, test } from "vitest";
import type { UserGroup } from "../wire/objects";
import {
  allowedSystemGroups,
  isSame,
  keysOf,
  rolesToGive,
  settingOf,
  type PermissionRule,
} from "./holders";

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

test("a rule says which groups of the system are offered", () => {
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

test("a setting is taken apart and put together again", () => {
  expect(keysOf(groups, 0)).toEqual([]);
  expect(keysOf(groups, 5)).toEqual(["g5"]);
  const custom = { direct_members: [7], direct_subgroups: [5] };
  expect(keysOf(groups, custom)).toEqual(["g5", "u7"]);
  expect(settingOf(["g5", "u7"])).toEqual(custom);
  expect(settingOf(["g5"])).toBe(5);
  expect(settingOf(["u7"])).toEqual({ direct_members: [7], direct_subgroups: [] });
});

test("the same people and groups are the same setting", () => {
  const one = { direct_members: [7, 3], direct_subgroups: [] };
  expect(isSame(one, { direct_members: [3, 7], direct_subgroups: [] })).toBe(true);
  expect(isSame(one, 3)).toBe(false);
});

test("nobody gives a role above one's own", () => {
  expect(rolesToGive(100)).toEqual([100, 200, 300, 400, 600]);
  expect(rolesToGive(200)).toEqual([200, 300, 400, 600]);
  expect(rolesToGive(400)).toEqual([400, 600]);
});
