/** The inbox's state, restored when the user returns. */

import type { ConversationKey } from "../data/conversations";
import { EVERYTHING, type InboxFilter, type InboxOrder } from "../data/inbox";
import { Remembered } from "../live/localSettings.svelte";

class InboxPlace {
  /** Stored in this browser. */
  readonly order = new Remembered<InboxOrder>("inbox-order", "unread");

  filter = $state.raw<InboxFilter>(EVERYTHING);
  text = $state("");
  /** The last focused row. */
  current = $state<ConversationKey | null>(null);
  /** Scroll position, in pixels. */
  top = 0;
  /** Whether a conversation was opened: its row gets the focus again. */
  opened = false;
}

export const inboxPlace = new InboxPlace();
