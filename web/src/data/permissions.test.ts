import { describe, expect, it } from "vitest";
import type { Data, Message } from "./data";
import { mayDelete, mayEdit, mayMove, maySeeHistory } from "./permissions";

const group = (id: number, members: number[]) => ({
  id,
  members,
  direct_subgroup_ids: [],
  deactivated: false,
});

const data = {
  me: 4,
  users: new Map([[4, { user_id: 4, role: 400, is_admin: false }]]),
  groups: new Map([
    [1, group(1, [4])],
    [2, group(2, [])],
  ]),
  channels: new Map([
    [7, { stream_id: 7, is_archived: false }],
    [8, { stream_id: 8, is_archived: true }],
  ]),
  realm: {
    realm_allow_message_editing: true,
    realm_message_content_edit_limit_seconds: 600,
    realm_message_content_delete_limit_seconds: null,
    realm_can_delete_own_message_group: 1,
    realm_can_delete_any_message_group: 2,
    realm_can_move_messages_between_topics_group: 1,
    realm_can_move_messages_between_channels_group: 2,
    realm_move_messages_within_stream_limit_seconds: 1000,
    realm_message_edit_history_visibility_policy: "all",
  },
} as unknown as Data;

const message = (more: Partial<Message> = {}) =>
  ({
    sender_id: 4,
    type: "stream",
    stream_id: 7,
    timestamp: 0,
    submessages: [],
    ...more,
  }) as unknown as Message;

describe("message permissions", () => {
  it("allow editing the user's own messages for a while", () => {
    expect(mayEdit(data, message(), 600)).toBe(true);
    expect(mayEdit(data, message(), 601)).toBe(false);
    expect(mayEdit(data, message({ sender_id: 5 }), 0)).toBe(false);
    expect(mayEdit(data, message({ stream_id: 8 }), 0)).toBe(false);
  });

  it("allow deleting own messages, or any with the permission", () => {
    expect(mayDelete(data, message(), 1e9)).toBe(true);
    expect(mayDelete(data, message({ sender_id: 5 }), 0)).toBe(false);
  });

  it("allow moving recent messages", () => {
    expect(mayMove(data, message({ sender_id: 5 }), 1000)).toBe(true);
    expect(mayMove(data, message(), 1001)).toBe(false);
    expect(mayMove(data, message({ type: "private" }), 0)).toBe(false);
  });

  it("allow viewing edit history", () => {
    expect(maySeeHistory(data, message())).toBe(false);
    expect(maySeeHistory(data, message({ last_edit_timestamp: 5 }))).toBe(true);
  });
});
