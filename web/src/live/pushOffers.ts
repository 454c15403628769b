/** Offers push notifications, and opens conversations from them. Loaded when needed. */

import type { App } from "../app";
import { words } from "../words/index.svelte";
import { desktop } from "./desktop";
import { canAsk, devices, noteOffered, offerable, renew, turnOn } from "./pushing";

/** Offer once, at the first message that arrives while the user looks elsewhere. */
export function offerPushes({ store, toasts }: App): void {
  const what = desktop() ? null : offerable(store.me);
  if (!what) return;
  noteOffered(store.me);
  const offerNotes = () =>
    toasts.offer(words.shell.offerNotes, {
      label: words.shell.takePushes,
      run: () => void Notification.requestPermission(),
    });
  if (what === "notes") {
    offerNotes();
    return;
  }
  void devices()
    .then(({ enabled }) => {
      if (enabled) {
        toasts.offer(words.shell.offerPushes, {
          label: words.shell.takePushes,
          run: () => void toasts.attempt(turnOn(store.me)),
        });
      } else if (canAsk()) {
        offerNotes();
      }
    })
    // Offline: the settings offer it again.
    .catch(() => undefined);
}

/** Keep the push subscription current and open notifications that were clicked. */
export function startPushing({ store, router }: App): () => void {
  const container = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  const go = ({ data }: MessageEvent) => {
    const told = data as { type?: string; url?: string } | null;
    const [, fragment] = told?.type === "go" ? (told.url ?? "").split("#") : [];
    if (fragment) router.go(fragment);
  };
  container?.addEventListener("message", go);
  // The settings page shows problems.
  void renew(store.me).catch(() => undefined);
  return () => container?.removeEventListener("message", go);
}
