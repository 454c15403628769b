import { expect, it } from "vitest";
import { firstSteps, type Facts } from "./firstSteps";

type Known = Parameters<typeof firstSteps>[0];

const NOTHING = { wrote: false, address: undefined, mail: false, backups: undefined };

const known = (more: object = {}) =>
  ({
    me: 1,
    users: new Map([
      [1, { is_bot: false }],
      [2, { is_bot: true }],
      [3, { is_bot: false, is_active: false }],
    ]),
    channels: new Map([[1, {}]]),
    realm: { realm_icon_source: "G", realm_signup_announcements_stream_id: -1 },
    ...more,
  }) as unknown as Known;

const done = (some: Known, facts: Facts) =>
  firstSteps(some, facts).flatMap((step) => (step.done ? [step.name] : []));

it("marks finished steps, and skips those the user may not know about", () => {
  expect(done(known(), NOTHING)).toEqual([]);
  expect(firstSteps(known(), NOTHING).map((step) => step.name)).not.toContain("backups");
  expect(firstSteps(known(), NOTHING).map((step) => step.name)).not.toContain("address");
  const users = new Map([
    [1, { is_bot: false, profile_data: { 3: { value: "she" } } }],
    [4, { is_bot: false }],
  ]);
  const channels = new Map([1, 2].map((id) => [id, {}]));
  const realm = { realm_icon_source: "U", realm_signup_announcements_stream_id: 1 };
  const all = known({ users, channels, realm });
  expect(done(all, { wrote: true, address: true, mail: true, backups: true })).toEqual([
    "invite",
    "channels",
    "picture",
    "profile",
    "newcomers",
    "write",
    "address",
    "mail",
    "backups",
  ]);
});
