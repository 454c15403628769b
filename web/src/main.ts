import "../../src/tertulia/wire/assets/tokens.css";
import "./design/base.css";
import "./design/content.css";
import { mount } from "svelte";
import Root from "./Root.svelte";
import { viewShown } from "./shell/viewShown";

mount(Root, { target: document.getElementById("app")! });

// On the first visit, the system's fonts show the messages, so ours don't compete with them for a
// slow network.
void (isCached() ? Promise.resolve() : viewShown).then(() => import("./design/fonts"));

/** Whether this script came from a cache. */
function isCached(): boolean {
  const entries = performance.getEntriesByName(import.meta.url) as PerformanceResourceTiming[];
  return entries.some((entry) => entry.transferSize === 0);
}
