/** The inbox's state, restored when the user returns. */

import type { ConversationKey } from "../data/conversations";
import { EVERYTHING, type InboxFilter, type InboxOrder } from "../data/inbox";
import { LocalSetting } from "../live/storage.svelte";

class InboxState {
  /** Stored in this browser. */
  readonly order = new LocalSetting<InboxOrder>("inbox-order", "unread");

  filter = $state.raw<InboxFilter>(EVERYTHING);
  text = $state("");
  /** The last focused row. */
  current = $state<ConversationKey | null>(null);
  /** Scroll position, in pixels. */
  top = 0;
  /** Whether a conversation was opened: its row gets the focus again. */
  opened = false;
}

export const inboxState = new InboxState();
