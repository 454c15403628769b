import { RememberedSet } from "../live/localSettings.svelte";

/** Collapsed sections of the sidebar. */
export const folded = new RememberedSet("folded", ["inactive"]);

/** Channels with visible topics. */
export const unfolded = new RememberedSet("channels-open");
