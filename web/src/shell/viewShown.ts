/** How often to look, and how long to wait for a view that doesn't load, in ms. */
const PACE = 50;
const PATIENCE = 10_000;

const SHOWN = "main h1";
const LOADING = "main [aria-busy=true]";

/** Resolves once the first view has its content. Anything less urgent waits for it, because a slow
 * network is shared by all requests. */
export const viewShown = new Promise<void>((resolve) => {
  const until = performance.now() + PATIENCE;
  const look = () => {
    const isShown = document.querySelector(SHOWN) && !document.querySelector(LOADING);
    if (isShown || performance.now() > until) resolve();
    else setTimeout(look, PACE);
  };
  look();
});
