import type { App } from "../app";
import { privacyChange, privacyOf } from "../data/channels";
import type { Channel } from "../data/data";
import { words } from "../words/index.svelte";
import { patch } from "../wire/http";

/** Make a channel private for its subscribers, with their full history, and offer to undo it. */
export async function makePrivate({ toasts }: App, channel: Channel): Promise<void> {
  const path = `/streams/${channel.stream_id}`;
  const before = privacyOf(channel);
  if (!(await toasts.attempt(patch(path, privacyChange("private"))))) return;
  toasts.undoable(words.messages.head.madePrivate({ name: channel.name }), () =>
    patch(path, privacyChange(before)),
  );
}
