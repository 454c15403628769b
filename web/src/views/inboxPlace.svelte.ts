/** Where one is in the inbox: it is there again when one comes back from a conversation. */

import type { ConversationKey } from "../data/conversations";
import { EVERYTHING, type InboxFilter, type InboxOrder } from "../data/inbox";
import { Remembered } from "../live/localSettings.svelte";

class InboxPlace {
  /** The order that this browser keeps. */
  readonly order = new Remembered<InboxOrder>("inbox-order", "unread");

  filter = $state.raw<InboxFilter>(EVERYTHING);
  text = $state("");
  /** The conversation whose row has the focus, or had it last. */
  current = $state<ConversationKey | null>(null);
  /** How far down one has scrolled, in pixels. */
  top = 0;
  /** Whether a conversation was opened from here: its row gets the focus back. */
  opened = false;
}

export const inboxPlace = new InboxPlace();
