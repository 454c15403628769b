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
