import { expect, test } from "vitest";
import type { UserGroup } from "../wire/objects";
import { movedIn } from "./movedIn";
import { membersOf } from "./peopleOf";

test("one of a list goes a step, and not beyond its ends", () => {
  expect(movedIn([1, 2, 3], 2, 1)).toEqual([1, 3, 2]);
  expect(movedIn([1, 2, 3], 2, -1)).toEqual([2, 1, 3]);
  expect(movedIn([1, 2, 3], 3, 1)).toEqual([1, 2, 3]);
  expect(movedIn([1, 2], 9, 1)).toEqual([1, 2]);
});

test("everybody in a group, through groups that hold each other", () => {
  const group = (id: number, members: number[], direct_subgroup_ids: number[]) =>
    [id, { id, members, direct_subgroup_ids } as unknown as UserGroup] as const;
  const groups = new Map([group(1, [5], [2]), group(2, [6, 5], [1])]);
  expect([...membersOf(groups, 1)]).toEqual([5, 6]);
});
