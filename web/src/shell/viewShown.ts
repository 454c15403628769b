/** How often to look, and how long to wait for a view that doesn't load, in ms. */
const CHECK_INTERVAL = 50;
const TIMEOUT = 10_000;

const HEADING = "main h1:not([data-hidden] *)";
const LOADING = "main [aria-busy=true]:not([data-hidden] *)";

/** Resolves once the first view has its content. Anything less urgent waits for it, because a slow
 * network is shared by all requests. */
export const viewShown = new Promise<void>((resolve) => {
  const until = performance.now() + TIMEOUT;
  const look = () => {
    const isShown = document.querySelector(HEADING) && !document.querySelector(LOADING);
    if (isShown || performance.now() > until) resolve();
    else setTimeout(look, CHECK_INTERVAL);
  };
  look();
});
