/** Calls at the organization's provider: where they are held, and their links. Pure. */

export type CallProvider = "jitsi" | "bigbluebutton";

type Realm = Readonly<Record<string, unknown>>;

/** `realm_video_chat_provider` by the interface's numbers. */
const PROVIDERS: Record<number, CallProvider> = { 1: "jitsi", 4: "bigbluebutton" };

/** Where calls are held; null where there are none, or where this client knows no way to them. */
export function callProvider(realm: Realm): CallProvider | null {
  const found = PROVIDERS[Number(realm["realm_video_chat_provider"])] ?? null;
  if (found === "jitsi") return jitsiServer(realm) ? found : null;
  const offered = (realm["realm_available_video_chat_providers"] ?? {}) as Record<string, unknown>;
  return found && "big_blue_button" in offered ? found : null;
}

/** The organization's own Jitsi server, or the one that this server names. */
function jitsiServer(realm: Realm): string | null {
  const own = realm["realm_jitsi_server_url"];
  const address = own ?? realm["server_jitsi_server_url"] ?? realm["jitsi_server_url"];
  const isOne = typeof address === "string" && /^https?:\/\/./.test(address);
  return isOne ? address.replace(/\/+$/, "") : null;
}

/** A new call there: nobody finds it who does not have its link. */
export function jitsiLink(realm: Realm, name: string, isVoice: boolean): string {
  return `${jitsiServer(realm)}/${name}#config.startWithVideoMuted=${isVoice}`;
}

/** A name that nobody guesses, in letters that every provider takes. */
export function callName(): string {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  // 234 is the greatest multiple of 26 in a byte: above it, some letters would come more often.
  const found: string[] = [];
  while (found.length < 20) {
    for (const one of crypto.getRandomValues(new Uint8Array(32))) {
      if (one < 234 && found.length < 20) found.push(letters[one % 26]!);
    }
  }
  return found.join("");
}
