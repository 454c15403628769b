/** Call a function when the browser is idle. Returns a function that cancels. */
export function whenIdle(run: () => void): () => void {
  if ("requestIdleCallback" in window) {
    const request = requestIdleCallback(run);
    return () => cancelIdleCallback(request);
  }
  // Safari has no idle callbacks.
  const timer = setTimeout(run, 200);
  return () => clearTimeout(timer);
}

/** Call a function once the next frame is painted. Returns a function that cancels. */
export function afterPaint(run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let frame = 0;
  const wait = () => (timer = setTimeout(run));
  // A frame's callbacks run before it's painted. Hidden pages have no frames.
  if (document.hidden) wait();
  else frame = requestAnimationFrame(wait);
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}
