/** Being told while the client is closed: this browser at its push service, and the server. */

import { get, post } from "../wire/http";

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

export interface PushDevices {
  enabled: boolean;
  public_key: string;
  subscriptions: PushDevice[];
}

/** Whose pushes come to this browser, and whether somebody was asked. */
const WHOSE = "tertulia:pushes";
const ASKED = "tertulia:pushes-asked";

export function canPush(): boolean {
  return "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
}

/** Whether the browser can still be asked whether it may show notes. */
export function canAsk(): boolean {
  return "Notification" in window && Notification.permission === "default";
}

/** What can be offered to that account, which was not asked yet: to be told on this device, or notes
 * while the client is open; null where there is nothing, or the browser forbids it. */
export function offerable(me: number): "pushes" | "notes" | null {
  if (read(WHOSE) === String(me) || read(ASKED) === String(me)) return null;
  if (!canPush()) return canAsk() ? "notes" : null;
  // Without its worker there is nobody who could be told: it is asked another time.
  if (Notification.permission === "denied" || !navigator.serviceWorker.controller) return null;
  return "pushes";
}

export function noteOffered(me: number): void {
  keep(ASKED, String(me));
}

export function devices(): Promise<PushDevices> {
  return get<PushDevices>("/push_subscriptions");
}

/** Have this browser told. False where the person, or the browser, does not allow it. */
export async function turnOn(me: number): Promise<boolean> {
  noteOffered(me);
  if ((await Notification.requestPermission()) !== "granted") return false;
  const { public_key: key } = await devices();
  const registration = await navigator.serviceWorker.getRegistration("/");
  if (!registration) return false;
  const { pushManager } = registration;
  const before = await pushManager.getSubscription();
  if (before && !isOfKey(before, key)) await before.unsubscribe();
  await say(
    await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) }),
  );
  keep(WHOSE, String(me));
  return true;
}

/** After signing in again, and where the browser has another address meanwhile. */
export async function renew(me: number): Promise<void> {
  if (!canPush() || Notification.permission !== "granted") return;
  const registration = await navigator.serviceWorker.getRegistration("/");
  const present = await registration?.pushManager.getSubscription();
  if (read(WHOSE) !== String(me)) {
    // It was somebody else's: it is not the next one's without asking.
    await present?.unsubscribe();
    return;
  }
  const { enabled, public_key: key, subscriptions } = await devices();
  if (!enabled) return;
  if (!present || !isOfKey(present, key)) await turnOn(me);
  else if (!subscriptions.some((one) => one.current)) await say(present);
}

/** Nothing comes to this browser any more. */
export async function turnOff(): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration("/");
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  keep(WHOSE, "");
}

function say(subscription: PushSubscription): Promise<unknown> {
  const { endpoint, keys } = subscription.toJSON();
  return post("/push_subscriptions", { endpoint, ...keys, name: deviceName(navigator.userAgent) });
}

/** "Firefox, Android": as a person knows it. */
export function deviceName(agent: string): string {
  const found = (names: readonly (readonly [string, RegExp])[]) =>
    names.find(([, sign]) => sign.test(agent))?.[0];
  const browser = found([
    ["Edge", /Edg/],
    ["Opera", /OPR\//],
    ["Samsung Internet", /SamsungBrowser/],
    ["Firefox", /Firefox|FxiOS/],
    ["Chrome", /Chrom|CriOS/],
    ["Safari", /Safari|AppleWebKit/],
  ]);
  const system = found([
    ["Android", /Android/],
    ["iPhone", /iPhone/],
    ["iPad", /iPad/],
    ["Mac", /Macintosh/],
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
    return null;
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Without a store it is asked again with the next page.
  }
}
