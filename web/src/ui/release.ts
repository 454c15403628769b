/** The longest delay of a tap after release, in ms. */
const TAP = 350;

/** Ignore the click and context menu that follow the current touch. */
export function swallowRelease(): void {
  const listening = new AbortController();
  const how = { signal: listening.signal, capture: true, passive: false };
  const swallow = (event: Event) => {
    // Synthetic clicks pass.
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
