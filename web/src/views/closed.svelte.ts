import { RememberedSet } from "../live/remembered.svelte";

/** Groups of the inbox that are folded up. */
export const closed = new RememberedSet("inbox-folded");
