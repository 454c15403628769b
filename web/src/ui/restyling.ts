/**
 * Styles that could not be loaded are not asked for again with the script that they belong to: what
 * loads both (Vite's) asks for each once. So they are here.
 */

const FAILED = "data-failed";

// (What a file's loading fails by is told to nobody above it, and heard on the way down alone.)
globalThis.addEventListener?.(
  "error",
  ({ target }) => {
    if (target instanceof HTMLLinkElement && target.rel === "stylesheet") {
      target.setAttribute(FAILED, "");
    }
  },
  true,
);

/** Ask again for what failed. Raises where it fails again. */
export async function restyled(): Promise<void> {
  const links = document.querySelectorAll<HTMLLinkElement>(`link[${FAILED}]`);
  await Promise.all([...links].map(again));
}

function again(link: HTMLLinkElement): Promise<unknown> {
  const fresh = link.cloneNode() as HTMLLinkElement;
  fresh.removeAttribute(FAILED);
  link.replaceWith(fresh);
  return new Promise((done, failed) => {
    fresh.addEventListener("load", done);
    fresh.addEventListener("error", () => failed(new Error(fresh.href)));
  });
}
