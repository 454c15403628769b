/** Push notifications: subscribes this browser and registers it with the server. */

import { get, post } from "../wire/http";
import type { App } from "../app";
import { words } from "../words/index.svelte";
import { desktop } from "./desktop";

export interface PushDevice {
  id: number;
  name: string;
  service: string;
  created_at: number;
  last_pushed_at: number | null;
  paused_until: number | null;
  trouble: string;
  current: boolean;
}

interface PushDevices {
  enabled: boolean;
  public_key: string;
  subscriptions: PushDevice[];
}

/** Whose pushes this browser receives, and whether the user was asked. */
const ACCOUNT_KEY = "tertulia:pushes";
const OFFERED_KEY = "tertulia:pushes-asked";

export function canPush(): boolean {
  return "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
}

/** Whether permission can still be requested. */
export function canAsk(): boolean {
  return "Notification" in window && Notification.permission === "default";
}

/** What to offer an account that wasn't asked yet: push notifications, or notifications while open;
 * null if neither is possible. */
function pushOffer(me: number): "pushes" | "notes" | null {
  if (read(ACCOUNT_KEY) === String(me) || read(OFFERED_KEY) === String(me)) return null;
  if (!canPush()) return canAsk() ? "notes" : null;
  // Without a service worker, pushes aren't possible: ask later.
  if (Notification.permission === "denied" || !navigator.serviceWorker.controller) return null;
  return "pushes";
}

function rememberOffer(me: number): void {
  keep(OFFERED_KEY, String(me));
}

export function pushDevices(): Promise<PushDevices> {
  return get<PushDevices>("/push_subscriptions");
}

/** Subscribe this browser. False if the user or the browser refuses. */
export async function turnOnPush(me: number): Promise<boolean> {
  rememberOffer(me);
  if ((await Notification.requestPermission()) !== "granted") return false;
  const { public_key: key } = await pushDevices();
  const registration = await navigator.serviceWorker.getRegistration("/");
  if (!registration) return false;
  const { pushManager } = registration;
  const before = await pushManager.getSubscription();
  if (before && !isOfKey(before, key)) await before.unsubscribe();
  await register(
    await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) }),
  );
  keep(ACCOUNT_KEY, String(me));
  return true;
}

/** After signing in again, or if the browser's subscription changed. */
async function renewPush(me: number): Promise<void> {
  if (!canPush() || Notification.permission !== "granted") return;
  const registration = await navigator.serviceWorker.getRegistration("/");
  const present = await registration?.pushManager.getSubscription();
  if (read(ACCOUNT_KEY) !== String(me)) {
    // It belonged to another user, who alone had agreed.
    await present?.unsubscribe();
    return;
  }
  const { enabled, public_key: key, subscriptions } = await pushDevices();
  if (!enabled) return;
  if (!present || !isOfKey(present, key)) await turnOnPush(me);
  else if (!subscriptions.some((subscription) => subscription.current)) await register(present);
}

/** Unsubscribe this browser. */
export async function turnOffPush(): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration("/");
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  keep(ACCOUNT_KEY, "");
}

function register(subscription: PushSubscription): Promise<unknown> {
  const { endpoint, keys } = subscription.toJSON();
  return post("/push_subscriptions", { endpoint, ...keys, name: deviceName(navigator.userAgent) });
}

/** A readable device name such as "Firefox, Android". */
export function deviceName(agent: string): string {
  const matching = (names: readonly (readonly [string, RegExp])[]) =>
    names.find(([, sign]) => sign.test(agent))?.[0];
  const browser = matching([
    ["Zulip Desktop", /ZulipElectron/],
    ["Edge", /Edg/],
    ["Opera", /OPR\//],
    ["Samsung Internet", /SamsungBrowser/],
    ["Firefox", /Firefox|FxiOS/],
    ["Chrome", /Chrom|CriOS/],
    ["Safari", /Safari|AppleWebKit/],
  ]);
  const system = matching([
    ["Android", /Android/],
    ["iPhone", /iPhone/],
    ["iPad", /iPad/],
    ["macOS", /Macintosh/],
    ["Windows", /Windows/],
    ["Linux", /Linux/],
  ]);
  return [browser, system].filter(Boolean).join(", ");
}

function isOfKey(subscription: PushSubscription, key: string): boolean {
  const present = subscription.options.applicationServerKey;
  return present !== null && String(new Uint8Array(present)) === String(bytes(key));
}

function bytes(encoded: string): Uint8Array<ArrayBuffer> {
  const text = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

function read(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    // Without storage, nothing is stored.
    return null;
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Without storage, the next page asks again.
  }
}

/** Offer once, at the first message that arrives while the user looks elsewhere. */
export function offerPush({ store, toasts }: App): void {
  const offer = desktop() ? null : pushOffer(store.me);
  if (!offer) return;
  rememberOffer(store.me);
  const offerNotes = () =>
    toasts.offer(words.shell.offerDesktop, {
      label: words.shell.turnOn,
      run: () => void Notification.requestPermission(),
    });
  if (offer === "notes") {
    offerNotes();
    return;
  }
  void pushDevices()
    .then(({ enabled }) => {
      if (enabled) {
        toasts.offer(words.shell.offerPushes, {
          label: words.shell.turnOn,
          run: () => void toasts.attempt(turnOnPush(store.me)),
        });
      } else if (canAsk()) {
        offerNotes();
      }
    })
    // Offline: the settings offer it again.
    .catch(() => undefined);
}

/** Keep the push subscription current and open notifications that were clicked. */
export function startPush({ store, router }: App): () => void {
  const container = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  const go = ({ data }: MessageEvent) => {
    const payload = data as { type?: string; url?: string } | null;
    const [, fragment] = payload?.type === "go" ? (payload.url ?? "").split("#") : [];
    if (fragment) router.go(fragment);
  };
  container?.addEventListener("message", go);
  // The settings page shows problems.
  void renewPush(store.me).catch(() => undefined);
  return () => container?.removeEventListener("message", go);
}
