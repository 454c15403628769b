/** How a channel tells of its messages: as one has chosen for it, or else in general. */

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

/** The properties in which a channel differs from one's general choice. */
export function ownWays(subscription: Subscription, settings: Settings): Property[] {
  return CHANNEL_WAYS.filter(
    ([property, general]) =>
      subscription[property] !== null && subscription[property] !== Boolean(settings[general]),
  ).map(([property]) => property);
}

/** What makes a channel tell as all others do. */
export function restoredWays(settings: Settings): [Property, boolean][] {
  return CHANNEL_WAYS.map(([property, general]) => [property, Boolean(settings[general])]);
}
