import { RememberedSet } from "../live/localSettings.svelte";

/** Groups of the inbox that are folded up. */
export const closed = new RememberedSet("inbox-folded");
