/** A tap comes so long after the finger was lifted, at most, in milliseconds. */
const TAP = 350;

/**
 * Let the finger that is down now mean nothing when it is lifted: neither a click, nor the menu of
 * the browser's own.
 */
export function swallowRelease(): void {
  const listening = new AbortController();
  const how = { signal: listening.signal, capture: true, passive: false };
  const swallow = (event: Event) => {
    // What opens is clicked upon by code.
    if (!event.isTrusted) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.type === "click") listening.abort();
  };
  const end = () => setTimeout(() => listening.abort(), TAP);
  for (const type of ["click", "contextmenu", "touchend"]) {
    window.addEventListener(type, swallow, how);
  }
  window.addEventListener("pointerup", end, how);
  window.addEventListener("pointercancel", end, how);
}
