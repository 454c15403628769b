import { RememberedSet } from "../live/localSettings.svelte";

/** Parts of the side bar that are folded up. */
export const folded = new RememberedSet("folded", ["inactive"]);

/** Channels whose topics are shown in it. */
export const unfolded = new RememberedSet("channels-open");
