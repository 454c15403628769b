/** Whether a key belongs to an input method, as for Japanese, where Enter confirms a choice. Safari
 * sends the key after the composition, recognizable only by its code. */
export function isConverting(event: KeyboardEvent): boolean {
  return event.isComposing || (event.keyCode === 229 && /^(Enter|Escape)$/.test(event.key));
}

/** Whether the primary pointer is touch, so that focused fields open an on-screen keyboard. */
export function isTouched(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}

/** Call `close` when the user navigates to another view. Returns a function that stops. */
export function onNavigation(close: () => void): () => void {
  // Ignore the navigation that has just happened, of which the browser tells later.
  const { hash } = window.location;
  const changed = (event: Event) => (!event.isTrusted || window.location.hash !== hash) && close();
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

/** Close requests: Android's back gesture and Escape. */
interface CloseWatcher {
  onclose: (() => void) | null;
  destroy: () => void;
}

const { CloseWatcher: Watcher } = globalThis as { CloseWatcher?: new () => CloseWatcher };

/** Call `close` once on the next close request instead of navigating back, where browsers support
 * it. Returns a function that stops. */
export function onCloseRequest(close: () => void): () => void {
  if (!Watcher) return () => {};
  const watcher = new Watcher();
  watcher.onclose = close;
  return () => watcher.destroy();
}

/** Sets `--keyboard` to the height that the on-screen keyboard covers where it overlays the page
 * (Safari). Returns a function that stops. */
export function followKeyboard(): () => void {
  const view = window.visualViewport;
  if (!view) return () => {};
  const measure = () => {
    // Pinch zoom also shrinks the viewport.
    const covered = view.scale > 1.01 ? 0 : window.innerHeight - view.height - view.offsetTop;
    document.documentElement.style.setProperty(
      "--keyboard",
      `${covered > 80 ? Math.round(covered) : 0}px`,
    );
  };
  view.addEventListener("resize", measure);
  view.addEventListener("scroll", measure);
  return () => {
    view.removeEventListener("resize", measure);
    view.removeEventListener("scroll", measure);
  };
}

/** Position an element above the bottom elements (`data-foot`: compose box, bottom bar) and within
 * the main view, through `--above`, `--from`, and `--to`. Returns a function that stops. */
export function positionAboveFoot(node: HTMLElement): () => void {
  const measure = () => {
    const feet = [...document.querySelectorAll("[data-foot]:not([data-hidden] *)")]
      .map((foot) => foot.getBoundingClientRect())
      .filter((box) => box.height > 0);
    const top = Math.min(window.innerHeight, ...feet.map((box) => box.top));
    const main = document.getElementById("main")?.getBoundingClientRect();
    node.style.setProperty("--above", `${Math.round(window.innerHeight - top)}px`);
    node.style.setProperty("--from", `${Math.round(main?.left ?? 0)}px`);
    node.style.setProperty(
      "--to",
      `${Math.round(window.innerWidth - (main?.right ?? window.innerWidth))}px`,
    );
  };
  let observed: Element[] = [];
  // A bottom element may be replaced by another, such as a button by the compose box.
  const watch = () => {
    const found = [...document.querySelectorAll("[data-foot]:not([data-hidden] *), #main")];
    if (found.length !== observed.length || found.some((one, at) => one !== observed[at])) {
      observed = found;
      sizes.disconnect();
      for (const one of [document.documentElement, ...found]) sizes.observe(one);
    }
    measure();
  };
  const sizes = new ResizeObserver(watch);
  watch();
  // Views have different bottom elements.
  window.addEventListener("hashchange", later);
  function later() {
    requestAnimationFrame(watch);
  }
  return () => {
    sizes.disconnect();
    window.removeEventListener("hashchange", later);
  };
}

/** The first element that isn't in a hidden view. */
export function shownElement(selector: string): HTMLElement | undefined {
  const found = document.querySelectorAll<HTMLElement>(selector);
  return [...found].find((element) => !element.closest("[data-hidden]"));
}

/** Marks the field of a dialog to focus first. */
export function focusFirst(node: HTMLElement): void {
  node.setAttribute("autofocus", "");
}
