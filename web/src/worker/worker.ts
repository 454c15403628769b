/**
 * The service worker: it keeps the client's own files, so that the client opens at once, and opens
 * without the server too. It keeps nothing of what people wrote: that is `live/keeping.ts`.
 *
 * It shows notes of messages too (`pushes.ts`).
 *
 * The page itself is asked for at the server first: a new one names new files, and whoever is not
 * signed in is sent to the door. What is kept answers only when the server does not.
 */
/// <reference lib="webworker" />

import { takePushes } from "./pushes";

declare const self: ServiceWorkerGlobalScope;
/** Put in when the client is built: its files, and a mark that changes when any of them does. */
declare const __FILES__: string[];
declare const __MARK__: string;

const PREFIX = "tertulia-";
const CACHE = PREFIX + __MARK__;
const PAGE = "/app/";
const ASSETS = "/app/assets/";
/** As in `live/forgetting.ts`: what both import would be a file of its own, which no worker loads. */
const READING = "tertulia-offline";
/** How long the server may take for the page before the one that is kept is shown. */
const PATIENCE = 2500;

self.addEventListener("install", (event) => {
  event.waitUntil(install());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(activate());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  if (request.mode === "navigate") {
    if (pathname === "/" || pathname === PAGE) event.respondWith(page(request));
  } else if (pathname.startsWith(ASSETS)) {
    event.respondWith(asset(request));
  }
});

async function install(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll([PAGE, ...__FILES__]);
  // Windows of the version before go on with its files, which are still kept.
  await self.skipWaiting();
}

/** Only this version's files are kept, and those of the one before. */
async function activate(): Promise<void> {
  const own = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(own.slice(0, -1).map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function page(request: Request): Promise<Response> {
  const kept = async () => (await caches.match(PAGE, { cacheName: CACHE })) ?? Response.error();
  const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), PATIENCE));
  const asked = fetch(request).catch(() => null);
  const answer = await Promise.race([asked, late]);
  // Who is not signed in any more is sent to the door, and leaves nothing behind.
  if (answer?.type === "opaqueredirect") indexedDB.deleteDatabase(READING);
  // A proxy in front of a server that restarts answers with these.
  return answer && ![502, 503, 504].includes(answer.status) ? answer : kept();
}

/** The files' names tell their content: what is kept is right. */
async function asset(request: Request): Promise<Response> {
  const kept = await caches.match(request, { ignoreVary: true });
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) {
    const cache = await caches.open(CACHE);
    await cache.put(request, answer.clone());
  }
  return answer;
}

takePushes();
