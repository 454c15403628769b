/** Where a touch keyboard lies over the page instead of making it smaller (Safari): how much of the
 * page's foot it covers is `--keyboard`. Returns how to stop. */
export function followKeyboard(): () => void {
  const view = window.visualViewport;
  if (!view) return () => {};
  const measure = () => {
    // Zooming in makes the view smaller too.
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
