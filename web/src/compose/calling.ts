import type { App } from "../app";
import { callName, jitsiLink } from "../data/callLinks";
import { callProvider } from "../data/calls";
import type { Conversation } from "../data/conversations";
import { conversationName } from "../data/names";
import { get } from "../wire/http";
import { words } from "../words/index.svelte";

/** Create a call and return its Markdown link; null if no provider is set up. */
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
    // The conversation's name.
    meeting_name: to
      ? conversationName(store.users, store.channels, to, store.me)
      : words.media.videoCall,
    voice_only: isVoice,
  });
  return `[${said}](${url})`;
}
