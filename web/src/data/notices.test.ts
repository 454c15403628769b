import { describe, expect, it } from "vitest";
import type { Message } from "./data";
import cases from "./noticeCases.json";
import { noticeOf } from "./notices";

const SETTINGS = {
  enable_desktop_notifications: true,
  enable_sounds: false,
  wildcard_mentions_notify: true,
  enable_followed_topic_wildcard_mentions_notify: true,
  enable_followed_topic_desktop_notifications: true,
};
const SENDERS: Readonly<Record<string, number>> = { me: 1, muted: 9 };

interface Case {
  name: string;
  shown: boolean;
  flags?: string[];
  direct?: boolean;
  sender?: string;
  settings?: object;
  channel?: object;
  policy?: number;
}

function notice(one: Case, flags = one.flags ?? []) {
  const known = {
    me: 1,
    settings: { ...SETTINGS, ...one.settings },
    channels: new Map([[7, { subscription: { is_muted: false, ...one.channel } }]]),
    topicPolicies: new Map(one.policy ? [["c7/x", { visibility_policy: one.policy }]] : []),
    mutedUsers: new Set([9]),
  };
  const message = {
    sender_id: SENDERS[one.sender ?? ""] ?? 2,
    flags,
    ...(one.direct
      ? { type: "private", key: "d2" }
      : { type: "stream", stream_id: 7, key: "c7/x" }),
  };
  return noticeOf(
    known as unknown as Parameters<typeof noticeOf>[0],
    message as unknown as Message,
  );
}

describe("a message", () => {
  it.each((cases as Case[]).map((one) => [one.name, one] as const))("%s", (_, one) => {
    expect(notice(one)).toEqual({ shown: one.shown, heard: false });
    expect(notice(one, [...(one.flags ?? []), "read"]).shown).toBe(false);
  });
});
