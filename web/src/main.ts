import "../../src/tertulia/wire/assets/tokens.css";
import "./design/base.css";
import "./design/content.css";
import { mount } from "svelte";
import Root from "./Root.svelte";
import { viewShown } from "./shell/viewShown";
import { withStyles } from "./ui/styleRetry";

mount(Root, { target: document.getElementById("app")! });

// On the first visit, the system's fonts show the messages, so ours don't compete with them for a
// slow network.
void Promise.resolve(isCached() || viewShown).then(loadFonts);

/** Load the fonts, or when the browser is online again. Otherwise, the system's fonts stay. */
function loadFonts(): void {
  withStyles(() => import("./design/fonts")).catch(() =>
    addEventListener("online", loadFonts, { once: true }),
  );
}

/** Whether this script came from a cache. */
function isCached(): boolean {
  const entries = performance.getEntriesByName(import.meta.url) as PerformanceResourceTiming[];
  return entries.some((entry) => entry.transferSize === 0);
}
