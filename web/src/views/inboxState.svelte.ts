/** The inbox's state, restored when the user returns. */

import type { ConversationKey } from "../data/conversations";
import { EVERYTHING, type InboxFilter, type InboxOrder } from "../data/inbox";
import { BOTS } from "../data/inboxGroups";
import { LocalSetting, LocalSettingSet } from "../live/storage.svelte";

class InboxState {
  /** Stored in this browser. */
  readonly order = new LocalSetting<InboxOrder>("inbox-order", "unread");

  /** Folded groups, and whether conversations of bots are a group; in this browser, too. */
  readonly folded = new LocalSettingSet("inbox-folded", [BOTS]);
  readonly bots = new LocalSetting("inbox-bots", false);
  /** Keys of selected conversations. */
  chosen = $state.raw<ReadonlySet<ConversationKey>>(new Set());

  filter = $state.raw<InboxFilter>(EVERYTHING);
  text = $state("");
  /** The last focused row. */
  current = $state<ConversationKey | null>(null);
  /** Scroll position, in pixels. */
  top = 0;
  /** The part of the list that was in view, its height, and the font size, in pixels. */
  seen = { from: 0, height: 800, em: 16 };
  /** Whether a conversation was opened: its row gets the focus again. */
  opened = false;
}

export const inboxState = new InboxState();
