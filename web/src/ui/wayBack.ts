/** What asks to close what lies over the page: a phone's way back, and Escape wherever one is. */
interface CloseWatcher {
  onclose: (() => void) | null;
  destroy: () => void;
}

const { CloseWatcher: Watcher } = window as { CloseWatcher?: new () => CloseWatcher };

/**
 * Call this once when one asks to go back, instead of going to the view before: for what the
 * browser does not close by itself. Not all browsers can. Returns how to stop.
 */
export function onWayBack(close: () => void): () => void {
  if (!Watcher) return () => {};
  const watcher = new Watcher();
  watcher.onclose = close;
  return () => watcher.destroy();
}
