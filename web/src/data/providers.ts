type CallProvider = "jitsi" | "bigbluebutton" | "zoom" | "nextcloud" | "hosted";

interface Offered {
  id: number;
}

export type Realm = Readonly<Record<string, unknown>>;

/** Values of `realm_video_chat_provider`. */
const PROVIDERS: Record<number, CallProvider> = {
  1: "jitsi",
  3: "zoom",
  4: "bigbluebutton",
  5: "zoom",
  7: "nextcloud",
  100: "hosted",
};

/** The organization's call provider; null if it has none or this client doesn't support it. */
export function callProvider(realm: Realm): CallProvider | null {
  const provider = PROVIDERS[Number(realm["realm_video_chat_provider"])] ?? null;
  if (provider === "jitsi") return jitsiServer(realm) ? provider : null;
  const offered = Object.values(realm["realm_available_video_chat_providers"] ?? {}) as Offered[];
  return offered.some(({ id }) => id === realm["realm_video_chat_provider"]) ? provider : null;
}

export function jitsiServer(realm: Realm): string | null {
  const server = realm["realm_jitsi_server_url"];
  const address = server ?? realm["server_jitsi_server_url"] ?? realm["jitsi_server_url"];
  const isOne = typeof address === "string" && /^https?:\/\/./.test(address);
  return isOne ? address.replace(/\/+$/, "") : null;
}

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
