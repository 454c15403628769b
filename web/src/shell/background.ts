/** Starts what the first view doesn't need. */

import type { App } from "../app";
import { startPush } from "../live/push";
import { offerTimeZone } from "../live/timeZone";
import { listenForMenus } from "./contextMenus";
import { prefetchChunks } from "./prefetch";
import { prefetchConversations } from "./prefetchConversations";

/** Returns a function that stops all of it. */
export function startBackground(app: App): () => void {
  const stops = [listenForMenus(), startPush(app), prefetchChunks(), prefetchConversations(app)];
  // If it fails, it's offered another time.
  offerTimeZone(app).catch(() => undefined);
  return () => {
    for (const stop of stops) stop();
  };
}
