/** The service worker: caches the client's files, so that it starts fast and offline, and shows
 * push notifications (`pushes.ts`). Messages are stored by `live/offlineStore.ts` instead. The page
 * itself comes from the network first, since a new version names new files and signed-out users
 * are redirected to sign-in; the cached page is used only if the server doesn't respond. */
/// <reference lib="webworker" />

import { takePushes } from "./pushes";

declare const self: ServiceWorkerGlobalScope;
/** Set by the build: the files, and a hash of them. */
declare const __FILES__: string[];
declare const __MARK__: string;

const PREFIX = "tertulia-";
const CACHE = PREFIX + __MARK__;
const PAGE = "/app/";
const ASSETS = "/app/assets/";
/** Same as in `live/storage.svelte.ts`: a shared import would become a chunk, which workers can't
 * load. */
const OFFLINE_CACHE = "tertulia-offline";
/** How long to wait for the page before the cached one is used, in ms. */
const PAGE_TIMEOUT = 2500;

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
  // Windows of the previous version keep their files, which stay cached.
  await self.skipWaiting();
}

/** Keep the files of this version and the previous one. */
async function activate(): Promise<void> {
  const outdated = (await caches.keys()).filter(
    (name) => name.startsWith(PREFIX) && name !== CACHE,
  );
  await Promise.all(outdated.slice(0, -1).map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function page(request: Request): Promise<Response> {
  const kept = async () => (await caches.match(PAGE, { cacheName: CACHE })) ?? Response.error();
  const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), PAGE_TIMEOUT));
  // Offline: the stored page is shown.
  const response = fetch(request).catch(() => null);
  const answer = await Promise.race([response, late]);
  // Signed out: delete the offline data.
  if (answer?.type === "opaqueredirect") indexedDB.deleteDatabase(OFFLINE_CACHE);
  // Responses of a proxy while the server restarts.
  return answer && ![502, 503, 504].includes(answer.status) ? answer : kept();
}

/** File names contain a hash, so cached files are always valid. */
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
