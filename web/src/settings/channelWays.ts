/** A channel's notification settings, which override the defaults. */

import type { UserSettings } from "../data/data";
import type { Subscription } from "../wire/objects";
import { CHANNEL_WAYS } from "./tables";

type Property = (typeof CHANNEL_WAYS)[number][0];
type Settings = Readonly<Record<string, unknown>> | UserSettings;

export function wayOf(
  subscription: Subscription,
  settings: Settings,
  property: Property,
  general: string,
): boolean {
  return subscription[property] ?? Boolean(settings[general]);
}

/** The overridden properties. */
export function ownWays(subscription: Subscription): Property[] {
  return CHANNEL_WAYS.map(([property]) => property).filter(
    (property) => subscription[property] !== null,
  );
}

/** The change that removes all overrides. */
export function restoredWays(subscription: Subscription): [Property, null][] {
  return ownWays(subscription).map((property) => [property, null]);
}
