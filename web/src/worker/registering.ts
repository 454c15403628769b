/** Registers the service worker, and reports new versions of the client. */

const WORKER = "/worker.js";
const HOUR = 3_600_000;

interface Watch {
  /** Check for a new version. */
  look(): void;
  stop(): void;
}

/** Calls `newer` once a new version is available; it loads with the next page. */
export function watchVersion(newer: () => void): Watch {
  const ended = new AbortController();
  const { signal } = ended;
  let isAnnounced = false;
  let last = Date.now();
  let registration: ServiceWorkerRegistration | undefined;

  const announce = () => {
    if (!isAnnounced) newer();
    isAnnounced = true;
  };
  const look = () => {
    last = Date.now();
    // Offline: nothing to learn.
    registration?.update().catch(() => undefined);
  };

  // A chunk failed to load: either a new version replaced it, or the client is offline, which the
  // offline bar shows.
  const missed = () =>
    void isReplaced().then((replaced) => replaced && !signal.aborted && announce());
  window.addEventListener("vite:preloadError", missed, { signal });

  const container = import.meta.env.PROD ? navigator.serviceWorker : undefined;
  if (container) {
    let { controller } = container;
    const changed = () => {
      // The first worker isn't an update.
      if (controller) announce();
      ({ controller } = container);
    };
    container.addEventListener("controllerchange", changed, { signal });
    document.addEventListener(
      "visibilitychange",
      () => document.visibilityState === "visible" && Date.now() - last > HOUR && look(),
      { signal },
    );
    container
      .register(WORKER, { scope: "/" })
      .then((active) => (registration = active))
      // Some browsers block storage, for example in private windows.
      .catch(() => undefined);
  }
  return { look, stop: () => ended.abort() };
}

/** Whether the server's page loads another version than this. */
async function isReplaced(): Promise<boolean> {
  const script = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  try {
    const page = await fetch("/", { cache: "no-store" });
    return Boolean(script) && page.ok && !page.redirected && !(await page.text()).includes(script!);
  } catch {
    // Offline: it looks again later.
    return false;
  }
}
