import { expect, test } from "vitest";
import type { Subscription } from "../wire/objects";
import { overriddenProperties, withoutOverrides, channelSetting } from "./channelNotifications";

const settings = { enable_stream_desktop_notifications: true, wildcard_mentions_notify: true };
const subscription = {
  desktop_notifications: null,
  audible_notifications: true,
  push_notifications: false,
  email_notifications: null,
  wildcard_mentions_notify: true,
} as Subscription;

test("a channel setting overrides the default", () => {
  expect(overriddenProperties(subscription)).toEqual([
    "audible_notifications",
    "push_notifications",
    "wildcard_mentions_notify",
  ]);
  expect(
    channelSetting(
      subscription,
      settings,
      "desktop_notifications",
      "enable_stream_desktop_notifications",
    ),
  ).toBe(true);
});

test("the default leaves the channel unset, so that it follows later changes", () => {
  expect(withoutOverrides(subscription)).toEqual([
    ["audible_notifications", null],
    ["push_notifications", null],
    ["wildcard_mentions_notify", null],
  ]);
});
