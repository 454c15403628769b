/** Has the browser keep the client's files, and tells when there is a newer client. */

const WORKER = "/worker.js";
const HOUR = 3_600_000;

export interface Watch {
  /** Look whether the server has a newer client. */
  look(): void;
  stop(): void;
}

/** Calls `newer` once a newer client is there: it comes with the next load of the page. */
export function watchVersion(newer: () => void): Watch {
  const ended = new AbortController();
  const { signal } = ended;
  let told = false;
  let last = Date.now();
  let registration: ServiceWorkerRegistration | undefined;

  const tell = () => {
    if (!told) newer();
    told = true;
  };
  const look = () => {
    last = Date.now();
    // Without the server there is nothing to learn.
    registration?.update().catch(() => undefined);
  };

  // A part of this version is asked for that the server does not have any more; or there is no
  // network or no server, of which the bar at the top tells.
  const missed = () => void isReplaced().then((replaced) => replaced && !signal.aborted && tell());
  window.addEventListener("vite:preloadError", missed, { signal });

  const container = import.meta.env.PROD ? navigator.serviceWorker : undefined;
  if (container) {
    let { controller } = container;
    const changed = () => {
      // The first of all is not newer than anything.
      if (controller) tell();
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
      .then((found) => (registration = found))
      // Some browsers keep nothing for anybody, in private windows for example.
      .catch(() => undefined);
  }
  return { look, stop: () => ended.abort() };
}

/** Whether the server's page begins another client than this one. */
async function isReplaced(): Promise<boolean> {
  const begun = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  try {
    const page = await fetch("/", { cache: "no-store" });
    return Boolean(begun) && page.ok && !page.redirected && !(await page.text()).includes(begun!);
  } catch {
    return false;
  }
}
