/** A channel's notification settings, which override the defaults. */

import type { UserSettings } from "../data/data";
import type { Subscription } from "../wire/objects";
import { CHANNEL_OVERRIDES } from "./tables";

type Property = (typeof CHANNEL_OVERRIDES)[number][0];
type Settings = Readonly<Record<string, unknown>> | UserSettings;

export function channelSetting(
  subscription: Subscription,
  settings: Settings,
  property: Property,
  general: string,
): boolean {
  return subscription[property] ?? Boolean(settings[general]);
}

/** The overridden properties. */
export function overriddenProperties(subscription: Subscription): Property[] {
  return CHANNEL_OVERRIDES.map(([property]) => property).filter(
    (property) => subscription[property] !== null,
  );
}

/** The change that removes all overrides. */
export function withoutOverrides(subscription: Subscription): [Property, null][] {
  return overriddenProperties(subscription).map((property) => [property, null]);
}
