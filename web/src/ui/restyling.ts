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

/** What could not be loaded, by how it is asked for (which is another function each time). */
const missed = new Set<string>();
/** Styles that are asked for again just now. */
const coming = new Set<Promise<unknown>>();

/**
 * Load something, and ask again for the styles that failed. What could not be loaded before waits
 * for them, and fails with them; for all else it is enough that they come.
 */
export async function styled<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  document.querySelectorAll<HTMLLinkElement>(`link[${FAILED}]`).forEach(again);
  const name = String(load);
  try {
    if (missed.has(name)) await Promise.all(coming);
    const loaded = await load();
    missed.delete(name);
    return loaded;
  } catch (error) {
    missed.add(name);
    throw error;
  }
}

function again(link: HTMLLinkElement): void {
  const fresh = link.cloneNode() as HTMLLinkElement;
  fresh.removeAttribute(FAILED);
  link.replaceWith(fresh);
  const style = new Promise((done, failed) => {
    fresh.addEventListener("load", done);
    fresh.addEventListener("error", () => failed(new Error(fresh.href)));
  });
  coming.add(style);
  const isOver = () => coming.delete(style);
  style.then(isOver, isOver);
}
