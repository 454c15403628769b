/** Offering to tell on this device, and going where what was told leads. Loaded when it matters. */

import type { App } from "../app";
import { words } from "../words/index.svelte";
import { desktop } from "./desktop";
import { canAsk, devices, noteOffered, offerable, renew, turnOn } from "./pushing";

/** Asked once, when it first matters: when somebody has written to one who looks elsewhere. */
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
    // Without the server it is asked another time, in the settings.
    .catch(() => undefined);
}

/** What this browser is told while the client is closed, and where its notes lead. */
export function startPushing({ store, router }: App): () => void {
  const container = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  const go = ({ data }: MessageEvent) => {
    const told = data as { type?: string; url?: string } | null;
    const [, fragment] = told?.type === "go" ? (told.url ?? "").split("#") : [];
    if (fragment) router.go(fragment);
  };
  container?.addEventListener("message", go);
  // The settings say so where it does not work.
  void renew(store.me).catch(() => undefined);
  return () => container?.removeEventListener("message", go);
}
