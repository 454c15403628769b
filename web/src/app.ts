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

/** The view that a component belongs to. */
export interface ViewState {
  /** Whether it's shown. Others stay rendered but hidden: they must not hear keys or mark messages as
   * read. */
  readonly shown: boolean;
  /** Whether it was ever shown. Until then it loads no files. */
  readonly opened: boolean;
}

const VIEW = Symbol("view");

export function provideView(view: ViewState): void {
  setContext(VIEW, view);
}

/** Call during component initialization. */
export function useView(): ViewState {
  return getContext<ViewState | undefined>(VIEW) ?? { shown: true, opened: true };
}

/** For `$derived.by`: the last value while it's held, without following what it's computed from. */
export function heldWhile<Value>(isHeld: () => boolean, compute: () => Value): () => Value {
  let last: { value: Value } | undefined;
  return () => {
    if (!last || !isHeld()) last = { value: compute() };
    return last.value;
  };
}
