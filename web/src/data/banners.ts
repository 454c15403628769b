import type { Banner } from "../wire/objects";

/** All banners, oldest first. Older servers don't send any. */
export function bannersOf(realm: Readonly<Record<string, unknown>>): readonly Banner[] {
  return (realm["realm_banners"] as readonly Banner[] | undefined) ?? [];
}

/** Banners that haven't expired and weren't closed on this device. */
export function shownBanners(
  banners: readonly Banner[],
  closed: readonly number[],
  now: number,
): readonly Banner[] {
  return banners.filter((banner) => banner.ends_at > now && !closed.includes(banner.id));
}
