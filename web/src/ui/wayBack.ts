/** Close requests: Android's back gesture and Escape. */
interface CloseWatcher {
  onclose: (() => void) | null;
  destroy: () => void;
}

const { CloseWatcher: Watcher } = window as { CloseWatcher?: new () => CloseWatcher };

/** Call `close` once on the next close request instead of navigating back, where browsers support
 * it. Returns a function that stops. */
export function onWayBack(close: () => void): () => void {
  if (!Watcher) return () => {};
  const watcher = new Watcher();
  watcher.onclose = close;
  return () => watcher.destroy();
}
