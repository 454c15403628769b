import { describe, expect, it } from "vitest";
import type { User, UserGroup } from "../wire/objects";
import {
  permissionToDelete,
  permissionToEdit,
  mayMoveOut,
  mayMoveWithin,
  moveLimit,
} from "./permissions";
import type { Channel, Data, Message } from "./data";
import { mentionedIn, prevents, warningsFor } from "./warnings";

const EVERYONE = 7;
const ADMINS = 2;

function person(user_id: number, full_name: string, more: Partial<User> = {}): [number, User] {
  return [
    user_id,
    { user_id, full_name, is_active: true, is_bot: false, role: 400, ...more } as User,
  ];
}

function channel(more: Partial<Channel> = {}): Channel {
  return {
    stream_id: 1,
    name: "kitchen",
    is_archived: false,
    invite_only: false,
    topics_policy: "inherit",
    subscription: {},
    subscriber_count: 40,
    can_send_message_group: EVERYONE,
    can_add_subscribers_group: ADMINS,
    can_delete_any_message_group: ADMINS,
    can_delete_own_message_group: ADMINS,
    can_move_messages_within_channel_group: ADMINS,
    can_move_messages_out_of_channel_group: ADMINS,
    ...more,
  } as Channel;
}

function data(target: Channel = channel(), realm: Record<string, unknown> = {}): Data {
  const group = (id: number, members: number[]): [number, UserGroup] => [
    id,
    { id, members, direct_subgroup_ids: [], deactivated: false } as unknown as UserGroup,
  ];
  return {
    me: 1,
    users: new Map([
      person(1, "Iris"),
      person(2, "Marco"),
      person(3, "Theo", { role: 600 }),
      person(4, "Gone", { is_active: false }),
    ]),
    groups: new Map([group(EVERYONE, [1, 2, 3]), group(ADMINS, [])]),
    channels: new Map([[1, target]]),
    directs: new Map(),
    realm: {
      max_topic_length: 60,
      realm_topics_policy: "allow_empty_topic",
      realm_direct_message_permission_group: EVERYONE,
      realm_direct_message_initiator_group: EVERYONE,
      realm_enable_guest_user_dm_warning: true,
      realm_can_mention_many_users_group: ADMINS,
      realm_can_add_subscribers_group: EVERYONE,
      realm_allow_message_editing: true,
      realm_message_content_edit_limit_seconds: 600,
      realm_message_content_delete_limit_seconds: null,
      realm_can_delete_own_message_group: EVERYONE,
      realm_can_delete_any_message_group: ADMINS,
      realm_can_move_messages_between_topics_group: EVERYONE,
      realm_can_move_messages_between_channels_group: ADMINS,
      realm_move_messages_within_stream_limit_seconds: 86_400,
      ...realm,
    },
  } as unknown as Data;
}

const topic = (name: string) => ({ kind: "topic", channelId: 1, topic: name }) as const;
const kinds = (warnings: ReturnType<typeof warningsFor>) => warnings.map((warning) => warning.kind);

describe("warnings", () => {
  it("name what prevents sending", () => {
    expect(kinds(warningsFor(data(channel({ is_archived: true })), topic("x"), ""))).toEqual([
      "archived",
    ]);
    const closed = channel({ can_send_message_group: ADMINS });
    expect(kinds(warningsFor(data(closed), topic("x"), ""))).toEqual(["cannotPost"]);
    const named = channel({ topics_policy: "disable_empty_topic" });
    expect(kinds(warningsFor(data(named), topic(""), ""))).toEqual(["emptyTopic"]);
    expect(kinds(warningsFor(data(), topic("x"), "@**all** hey"))).toEqual(["mayNotCallAll"]);
    expect(warningsFor(data(), topic("x"), "@**all**").every(prevents)).toBe(true);
  });

  it("name what to consider", () => {
    const allowed = data(channel(), { realm_can_mention_many_users_group: EVERYONE });
    expect(warningsFor(allowed, topic("x"), "@**everyone**")).toEqual([
      { kind: "callsMany", name: "everyone", count: 40 },
    ]);
    expect(kinds(warningsFor(data(), topic("✔ x"), ""))).toEqual(["resolved"]);
    expect(kinds(warningsFor(data(channel({ subscription: null })), topic("x"), ""))).toEqual([
      "notSubscribed",
    ]);
    expect(warningsFor(data(), topic("x"), "@**Marco** and @_**Theo**", new Set([1]))).toEqual([
      { kind: "notThere", userId: 2, maySubscribe: true },
    ]);
    expect(warningsFor(data(), topic("x"), "@**Marco**", new Set([1, 2]))).toEqual([]);
  });

  it("consider the recipients", () => {
    expect(kinds(warningsFor(data(), { kind: "direct", people: [2] }, ""))).toEqual([]);
    expect(kinds(warningsFor(data(), { kind: "direct", people: [3] }, ""))).toEqual(["guests"]);
    expect(kinds(warningsFor(data(), { kind: "direct", people: [4] }, ""))).toEqual(["gone"]);
    const closed = data(channel(), { realm_direct_message_initiator_group: ADMINS });
    expect(kinds(warningsFor(closed, { kind: "direct", people: [2] }, ""))).toEqual([
      "cannotStart",
    ]);
  });

  it("recognize mentioned people", () => {
    expect(mentionedIn("@**Ana** @**Bo|7** @_**Ce** @**all**\n```\n@**Di**\n```")).toEqual({
      names: ["Ana"],
      ids: [7],
      wildcards: ["all"],
    });
  });
});

describe("message permissions", () => {
  const message = (sender_id: number) =>
    ({
      id: 9,
      type: "stream",
      sender_id,
      stream_id: 1,
      timestamp: 1000,
      submessages: [],
    }) as unknown as Message;

  it("depend on time", () => {
    expect(permissionToEdit(data(), message(1), 1100)).toEqual({ until: 1600 });
    expect(permissionToEdit(data(), message(1), 1700)).toEqual({ refused: "late" });
    expect(permissionToEdit(data(), message(2), 1100)).toEqual({ refused: "rule" });
    expect(permissionToDelete(data(), message(1), 9e9)).toEqual({ until: null });
    expect(permissionToDelete(data(), message(2), 1100)).toEqual({ refused: "rule" });
    const archived = data(channel({ is_archived: true }));
    expect(permissionToEdit(archived, message(1), 1100)).toEqual({ refused: "archived" });
  });

  it("depend on rights", () => {
    expect(mayMoveWithin(data(), channel())).toBe(true);
    expect(mayMoveOut(data(), channel())).toBe(false);
    expect(moveLimit(data(), false)).toBe(86_400);
    expect(moveLimit(data(), true)).toBeNull();
  });
});
