/** Where animated pictures are looked for. Pure. */

import type { Realm } from "./calls";

export interface GifProvider {
  name: "GIPHY" | "KLIPY";
  key: string;
  /** `realm_gif_rating_policy`: how much is allowed, from 2 (for everybody) to 5. */
  rating: number;
}

/** The organization's service; null where there is none, or where none is wanted. */
export function gifProvider(realm: Realm): GifProvider | null {
  const rating = Number(realm["realm_gif_rating_policy"] ?? 0);
  if (!rating) return null;
  for (const name of ["GIPHY", "KLIPY"] as const) {
    const key = realm[`${name.toLowerCase()}_api_key`];
    if (typeof key === "string" && key) return { name, key, rating };
  }
  return null;
}
