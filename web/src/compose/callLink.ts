import type { App } from "../app";
import { callProvider, jitsiServer, type Realm } from "../data/providers";
import type { Conversation } from "../data/conversations";
import { conversationName } from "../data/names";
import { ApiError, get, post } from "../wire/http";
import { words } from "../words/index.svelte";

/** Create a call and return its Markdown link; null if no provider is set up. */
export async function callLink(
  { store }: Pick<App, "store">,
  to: Conversation | null,
  isVoice: boolean,
): Promise<string | null> {
  const provider = callProvider(store.realm);
  if (!provider) return null;
  const label = isVoice ? words.media.joinVoice : words.media.joinVideo;
  if (provider === "jitsi") return `[${label}](${jitsiLink(store.realm, callName(), isVoice)})`;
  const name = to
    ? conversationName(store.users, store.channels, to, store.me)
    : words.media.videoCall;
  const { url } = await newCall(provider, name, isVoice);
  return `[${label}](${url})`;
}

async function newCall(
  provider: "bigbluebutton" | "zoom" | "nextcloud" | "hosted",
  name: string,
  isVoice: boolean,
): Promise<{ url: string }> {
  switch (provider) {
    case "bigbluebutton":
      return get("/calls/bigbluebutton/create", { meeting_name: name, voice_only: isVoice });
    case "nextcloud":
      return post("/calls/nextcloud_talk/create", { room_name: name });
    case "hosted":
      return post("/calls/hosted/create", { voice_only: isVoice });
    case "zoom":
      try {
        return await post("/calls/zoom/create", { is_video_call: !isVoice });
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "INVALID_ZOOM_TOKEN") throw error;
        window.open("/calls/zoom/register", "_blank", "noopener");
        throw new Error(words.media.connectZoom, { cause: error });
      }
  }
}

/** Link to a new Jitsi room with an unguessable name. */
export function jitsiLink(realm: Realm, name: string, isVoice: boolean): string {
  return `${jitsiServer(realm)}/${name}#config.startWithVideoMuted=${isVoice}`;
}

/** An unguessable name, in letters that every provider accepts. */
export function callName(): string {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  // 234 is the largest multiple of 26 in a byte: larger values would favor some letters.
  const links: string[] = [];
  while (links.length < 20) {
    for (const byte of crypto.getRandomValues(new Uint8Array(32))) {
      if (byte < 234 && links.length < 20) links.push(letters[byte % 26]!);
    }
  }
  return links.join("");
}
