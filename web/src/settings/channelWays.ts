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

/** The properties for which one has chosen something of its own for a channel. */
export function ownWays(subscription: Subscription): Property[] {
  return CHANNEL_WAYS.map(([property]) => property).filter(
    (property) => subscription[property] !== null,
  );
}

/** What makes a channel tell as one's general choice says, now and whenever that changes. */
export function restoredWays(subscription: Subscription): [Property, null][] {
  return ownWays(subscription).map((property) => [property, null]);
}
