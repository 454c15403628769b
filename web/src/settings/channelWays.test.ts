import { expect, test } from "vitest";
import type { Subscription } from "../wire/objects";
import { ownWays, restoredWays, wayOf } from "./channelWays";

const settings = { enable_stream_desktop_notifications: true, wildcard_mentions_notify: true };
const subscription = {
  desktop_notifications: null,
  audible_notifications: true,
  push_notifications: false,
  email_notifications: null,
  wildcard_mentions_notify: true,
} as Subscription;

test("a channel says otherwise only where it differs", () => {
  expect(ownWays(subscription, settings)).toEqual(["audible_notifications"]);
  expect(
    wayOf(subscription, settings, "desktop_notifications", "enable_stream_desktop_notifications"),
  ).toBe(true);
});

test("as usual means as the general choice is", () => {
  expect(new Map(restoredWays(settings)).get("desktop_notifications")).toBe(true);
  expect(new Map(restoredWays(settings)).get("audible_notifications")).toBe(false);
});
