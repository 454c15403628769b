/** The services of a client, shared by its components. */

import { getContext, setContext } from "svelte";
import type { Connection } from "./live/connection.svelte";
import type { Drafts } from "./live/drafts.svelte";
import type { Outbox } from "./live/outbox.svelte";
import type { Router } from "./live/router.svelte";
import type { Store } from "./live/store.svelte";
import type { Toasts } from "./ui/toasts.svelte";

export interface App {
  store: Store;
  connection: Connection;
  router: Router;
  toasts: Toasts;
  outbox: Outbox;
  drafts: Drafts;
}

const KEY = Symbol("app");

export function provideApp(app: App): void {
  setContext(KEY, app);
}

/** Call during component initialization. */
export function useApp(): App {
  return getContext<App>(KEY);
}
