/** A call: its link, made where the organization holds calls. */

import type { App } from "../app";
import { callName, jitsiLink } from "../data/callLinks";
import { callProvider } from "../data/calls";
import type { Conversation } from "../data/conversations";
import { conversationName } from "../data/names";
import { get } from "../wire/http";
import { words } from "../words/index.svelte";

/** A new call, as it is written into a message; null where there is nowhere to hold it. */
export async function callLink(
  { store }: Pick<App, "store">,
  to: Conversation | null,
  isVoice: boolean,
): Promise<string | null> {
  const provider = callProvider(store.realm);
  if (!provider) return null;
  const said = isVoice ? words.media.joinVoice : words.media.joinVideo;
  if (provider === "jitsi") return `[${said}](${jitsiLink(store.realm, callName(), isVoice)})`;
  const { url } = await get<{ url: string }>("/calls/bigbluebutton/create", {
    // As the conversation is called.
    meeting_name: to
      ? conversationName(store.users, store.channels, to, store.me)
      : words.media.videoCall,
    voice_only: isVoice,
  });
  return `[${said}](${url})`;
}
