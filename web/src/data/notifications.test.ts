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
function known(example: Case, channel = "desktop"): NotificationState {
  const named = (values: object = {}) =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => {
        if (channel === "desktop") return [name, value];
        if (name === "enable_desktop_notifications") {
          return [`enable_offline_${channel}_notifications`, value];
        }
        return [name.replace("desktop_notifications", `${channel}_notifications`), value];
      }),
    );
  return {
    me: 1,
    settings: { ...named(SETTINGS), ...named(example.settings) },
    channels: new Map([[7, { subscription: { is_muted: false, ...named(example.channel) } }]]),
    topicPolicies: new Map(example.policy ? [["c7/x", { visibility_policy: example.policy }]] : []),
    mutedUsers: new Set([9]),
  } as unknown as NotificationState;
}

function message(example: Case, more: string[] = []): NotifiableMessage {
  return {
    sender_id: SENDERS[example.sender ?? ""] ?? 2,
    flags: [...(example.flags ?? []), ...more],
    ...(example.direct
      ? { type: "private", key: "d2" }
      : { type: "stream", stream_id: 7, key: "c7/x" }),
  } as unknown as NotifiableMessage;
}

describe("notification reasons", () => {
  it.each((cases as Case[]).map((example) => [example.name, example] as const))(
    "%s",
    (_, example) => {
      const isNotified = example.told !== null;
      expect(notificationEffect(known(example), message(example))).toEqual({
        shown: isNotified,
        isAudible: false,
      });
      expect(notificationEffect(known(example), message(example, ["read"])).shown).toBe(false);
      expect(notificationReason(known(example), message(example), "desktop")).toBe(example.told);
      for (const channel of ["push", "email"] as const) {
        // Alert words don't apply while the user is away.
        const wanted = example.told === "alerted" ? null : example.told;
        expect(notificationReason(known(example, channel), message(example), channel)).toBe(wanted);
      }
    },
  );
});
