import { expect, test } from "vitest";
import { Role, type User, type UserGroup } from "../wire/objects";
import {
  channelSettings,
  inOrder,
  revealsHistory,
  PRIVACIES,
  privacyChange,
  privacyOf,
  privacyOfNew,
  rightsIn,
} from "./channels";
import type { Channel } from "./data";

const group = (id: number, members: number[]) =>
  [
    id,
    { id, members, direct_subgroup_ids: [], deactivated: false } as unknown as UserGroup,
  ] as const;
const user = (user_id: number, role: number) =>
  [
    user_id,
    { user_id, role, is_admin: role <= Role.admin, is_guest: role === Role.guest } as User,
  ] as const;
const known = {
  me: 1,
  groups: new Map([group(1, []), group(6, [1, 2])]),
  users: new Map([user(1, Role.member)]),
  realm: { realm_can_add_subscribers_group: 6 },
};
const channel = {
  invite_only: false,
  is_web_public: false,
  history_public_to_subscribers: true,
  subscription: null,
  can_administer_channel_group: 1,
  can_add_subscribers_group: 1,
  can_remove_subscribers_group: 1,
  can_subscribe_group: 1,
} as unknown as Channel;

test("privacy is read and written with the same values", () => {
  for (const privacy of PRIVACIES) {
    const { invite_only, ...rest } = privacyOfNew(privacy);
    expect(privacyOf({ invite_only, ...rest } as unknown as Channel)).toBe(privacy);
    expect(privacyChange(privacy)["is_private"]).toBe(invite_only);
  }
});

test("members can join a public channel and add others, but not change it", () => {
  expect(rightsIn(known, channel)).toEqual({
    administer: false,
    addSubscribers: true,
    removeSubscribers: false,
    subscribe: true,
  });
});

test("a private channel excludes others unless its settings allow them", () => {
  const closed = { ...channel, invite_only: true };
  expect(rightsIn(known, closed).subscribe).toBe(false);
  expect(rightsIn(known, closed).addSubscribers).toBe(false);
  expect(rightsIn(known, { ...closed, can_subscribe_group: 6 }).subscribe).toBe(true);
});

test("guests don't gain from groups that exclude guests", () => {
  const guest = { ...known, users: new Map([user(1, Role.guest)]) };
  expect(rightsIn(guest, { ...channel, can_administer_channel_group: 6 }).administer).toBe(false);
  expect(rightsIn(guest, channel).subscribe).toBe(false);
  expect(rightsIn(guest, { ...channel, is_web_public: true }).subscribe).toBe(true);
});

test("administrators can change every channel", () => {
  const admin = { ...known, users: new Map([user(1, Role.admin)]) };
  expect(rightsIn(admin, channel)).toMatchObject({ administer: true, removeSubscribers: true });
});

test("sorts channels", () => {
  const of = (name: string, subscriber_count: number, stream_weekly_traffic: number | null) =>
    ({ name, subscriber_count, stream_weekly_traffic, date_created: 0 }) as Channel;
  const all = [of("b", 1, 9), of("a", 1, null), of("c", 5, 2)];
  const names = (order: "name" | "people" | "traffic") =>
    inOrder(all, order)
      .map((channel) => channel.name)
      .join("");
  expect([names("name"), names("people"), names("traffic")]).toEqual(["abc", "cab", "bca"]);
});

test("tells opening a channel from closing it", () => {
  expect(revealsHistory("public", "private")).toBe(true);
  expect(revealsHistory("private", "hidden")).toBe(true);
  expect(revealsHistory("hidden", "public")).toBe(false);
});

test("builds the fragment of a channel's settings", () => {
  expect(channelSettings({ stream_id: 7, name: "long table/é" })).toBe(
    "channels/7/long-table%2F%C3%A9",
  );
});
