import type { Realm } from "./calls";

export interface GifProvider {
  name: "GIPHY" | "KLIPY";
  key: string;
  /** `realm_gif_rating_policy`: from 2 (everyone) to 5. */
  rating: number;
}

/** The organization's GIF provider; null if none is configured or GIFs are disabled. */
export function gifProvider(realm: Realm): GifProvider | null {
  const rating = Number(realm["realm_gif_rating_policy"] ?? 0);
  if (!rating) return null;
  for (const name of ["GIPHY", "KLIPY"] as const) {
    const key = realm[`${name.toLowerCase()}_api_key`];
    if (typeof key === "string" && key) return { name, key, rating };
  }
  return null;
}
