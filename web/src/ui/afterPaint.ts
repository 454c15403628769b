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
