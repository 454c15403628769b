/** What everybody is told for a time. */

import type { Banner } from "../wire/objects";

/** All of them, the oldest first; older servers have none. */
export function bannersOf(realm: Readonly<Record<string, unknown>>): readonly Banner[] {
  return (realm["realm_banners"] as readonly Banner[] | undefined) ?? [];
}

/** Those whose time is not over, and that were not closed here. */
export function shownBanners(
  banners: readonly Banner[],
  closed: readonly number[],
  now: number,
): readonly Banner[] {
  return banners.filter((one) => one.ends_at > now && !closed.includes(one.id));
}
