import { expect, test } from "vitest";
import type { UserGroup } from "../wire/objects";
import { valueText } from "./auditLog";

const names = {
  on: "on",
  off: "off",
  groups: new Map([[3, { id: 3, name: "crew" } as UserGroup]]),
  groupName: (group: UserGroup) => group.name,
  roles: { "200": "Administrator" },
  userName: (id: number) => `Person ${id}`,
};

test("values of settings are shown as people call them", () => {
  expect(valueText("invite_required", true, names)).toBe("on");
  expect(valueText("role", 200, names)).toBe("Administrator");
  expect(valueText("can_invite_users_group", 3, names)).toBe("crew");
  expect(
    valueText("can_invite_users_group", { direct_members: [7], direct_subgroups: [3] }, names),
  ).toBe("crew, Person 7");
  expect(valueText("can_create_groups", 9, names)).toBe("9");
  expect(valueText("description", "", names)).toBe("–");
  expect(valueText("message_retention_days", 30, names)).toBe("30");
  expect(valueText("description", "x".repeat(100), names)).toHaveLength(60);
});
