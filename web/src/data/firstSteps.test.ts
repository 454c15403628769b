import { expect, it } from "vitest";
import { firstSteps } from "./firstSteps";

type Known = Parameters<typeof firstSteps>[0];

const known = (more: object = {}) =>
  ({
    me: 1,
    users: new Map([
      [1, { is_bot: false }],
      [2, { is_bot: true }],
      [3, { is_bot: false, is_active: false }],
    ]),
    channels: new Map([[1, {}]]),
    realm: { realm_icon_source: "G" },
    messages: new Map([[5, { sender_id: 2 }]]),
    ...more,
  }) as unknown as Known;

const done = (some: Known) => firstSteps(some).flatMap((one) => (one.done ? [one.name] : []));

it("tells what of the first steps is done", () => {
  expect(done(known())).toEqual([]);
  const users = new Map([
    [1, { is_bot: false, profile_data: { 3: { value: "she" } } }],
    [4, { is_bot: false }],
  ]);
  const channels = new Map([1, 2, 3].map((id) => [id, {}]));
  const realm = { realm_icon_source: "U" };
  const messages = new Map([[5, { sender_id: 1 }]]);
  expect(done(known({ users, channels, realm, messages }))).toEqual([
    "invite",
    "channels",
    "picture",
    "profile",
    "write",
  ]);
});
