import type { App } from "../app";
import type { Narrow } from "../data/conversations";
import { errorMessage, get } from "../wire/http";
import { words } from "../words/index.svelte";
import { apiNarrow } from "./messages";

/** Show a search at its first result on or after a day (YYYY-MM-DD). If nothing is that new, or the
 * server can't tell, say so and show the newest results. */
export async function goToDay(app: App, narrow: Narrow, day: string): Promise<void> {
  const { store, router, toasts } = app;
  try {
    const { messages } = await get<{ messages: { id: number }[] }>("/messages", {
      anchor: "date",
      anchor_date: new Date(`${day}T00:00`).toISOString(),
      num_before: 0,
      num_after: 1,
      narrow: apiNarrow(narrow, store),
      allow_empty_topic_name: true,
    });
    const [first] = messages;
    if (!first) toasts.info(words.messages.filters.nothingAfterDate);
    router.toNarrow(narrow, first?.id);
  } catch (error) {
    toasts.error(errorMessage(error));
    router.toNarrow(narrow);
  }
}
