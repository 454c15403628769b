/** What lies over a view is about that view. */

/** Call this when one goes to another view, by whatever way. Returns how to stop. */
export function onLeaving(close: () => void): () => void {
  // Whoever has only just gone here hears of it after what was opened then.
  const { hash } = window.location;
  const changed = () => window.location.hash !== hash && close();
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}
