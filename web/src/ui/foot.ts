/** Position an element above the bottom elements (`data-foot`: compose box, bottom bar) and within
 * the main view, through `--above`, `--from`, and `--to`. Returns a function that stops. */
export function standAboveFoot(node: HTMLElement): () => void {
  const measure = () => {
    const feet = [...document.querySelectorAll("[data-foot]")]
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
  const sizes = new ResizeObserver(measure);
  const watch = () => {
    sizes.disconnect();
    sizes.observe(document.documentElement);
    for (const foot of document.querySelectorAll("[data-foot], #main")) sizes.observe(foot);
    measure();
  };
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
