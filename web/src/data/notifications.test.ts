import { describe, expect, it } from "vitest";
import cases from "./notificationCases.json";
import {
  notificationEffect,
  notificationReason,
  type NotifiableMessage,
  type NotificationState,
} from "./notifications";

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
  /** The expected reason; null: no notification. */
  told: string | null;
  flags?: string[];
  direct?: boolean;
  sender?: string;
  settings?: object;
  channel?: object;
  policy?: number;
}

/** The case with another channel's settings instead of the desktop's. */
function known(one: Case, way = "desktop"): NotificationState {
  const named = (values: object = {}) =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => {
        if (way === "desktop") return [name, value];
        if (name === "enable_desktop_notifications") {
          return [`enable_offline_${way}_notifications`, value];
        }
        return [name.replace("desktop_notifications", `${way}_notifications`), value];
      }),
    );
  return {
    me: 1,
    settings: { ...named(SETTINGS), ...named(one.settings) },
    channels: new Map([[7, { subscription: { is_muted: false, ...named(one.channel) } }]]),
    topicPolicies: new Map(one.policy ? [["c7/x", { visibility_policy: one.policy }]] : []),
    mutedUsers: new Set([9]),
  } as unknown as NotificationState;
}

function message(one: Case, more: string[] = []): NotifiableMessage {
  return {
    sender_id: SENDERS[one.sender ?? ""] ?? 2,
    flags: [...(one.flags ?? []), ...more],
    ...(one.direct
      ? { type: "private", key: "d2" }
      : { type: "stream", stream_id: 7, key: "c7/x" }),
  } as unknown as NotifiableMessage;
}

describe("notification reasons", () => {
  it.each((cases as Case[]).map((one) => [one.name, one] as const))("%s", (_, one) => {
    const told = one.told !== null;
    expect(notificationEffect(known(one), message(one))).toEqual({ shown: told, heard: false });
    expect(notificationEffect(known(one), message(one, ["read"])).shown).toBe(false);
    expect(notificationReason(known(one), message(one), "desktop")).toBe(one.told);
    for (const way of ["push", "email"] as const) {
      // Alert words don't apply while the user is away.
      const wanted = one.told === "alerted" ? null : one.told;
      expect(notificationReason(known(one, way), message(one), way)).toBe(wanted);
    }
  });
});
