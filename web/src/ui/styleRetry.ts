/** Reloads failed style sheets: Vite's preload requests each only once and doesn't retry with the
 * script. */

const FAILED = "data-failed";

// Error events of resources don't bubble, so capture them.
globalThis.addEventListener?.(
  "error",
  ({ target }) => {
    if (target instanceof HTMLLinkElement && target.rel === "stylesheet") {
      target.setAttribute(FAILED, "");
    }
  },
  true,
);

/** Failed loads, by their source, since each call passes a new function. */
const missed = new Set<string>();
/** Style sheets being reloaded. */
const coming = new Set<Promise<unknown>>();

/** Load a module and retry failed styles. A previously failed load waits for them and fails with
 * them; others don't wait for their result. */
export async function withStyles<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
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
