/** Call `close` when the user navigates to another view. Returns a function that stops. */
export function onLeaving(close: () => void): () => void {
  // Ignore the navigation that has just happened.
  const { hash } = window.location;
  const changed = () => window.location.hash !== hash && close();
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}
