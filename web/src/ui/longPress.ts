/** Long press as the touch equivalent of "more". */

const PRESS_TIME = 450;
/** Movement in pixels that counts as scrolling. */
const MAX_MOVEMENT = 8;

/** For `{@attach longPress(…)}`: called with the pressed element. */
export function longPress(call: (target: Element) => void): (node: HTMLElement) => () => void {
  return (node) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let at = { x: 0, y: 0 };
    const stop = () => clearTimeout(timer);
    const down = (event: PointerEvent) => {
      stop();
      if (event.pointerType === "mouse") return;
      at = { x: event.clientX, y: event.clientY };
      timer = setTimeout(() => {
        // Releasing the finger must not activate what opened under it.
        swallowRelease();
        call(event.target as Element);
      }, PRESS_TIME);
    };
    const move = (event: PointerEvent) => {
      if (Math.hypot(event.clientX - at.x, event.clientY - at.y) > MAX_MOVEMENT) stop();
    };
    const listening = new AbortController();
    const { signal } = listening;
    node.addEventListener("pointerdown", down, { signal });
    node.addEventListener("pointermove", move, { signal });
    node.addEventListener("pointerup", stop, { signal });
    node.addEventListener("pointercancel", stop, { signal });
    return () => {
      stop();
      listening.abort();
    };
  };
}

/** The longest delay of a tap after release, in ms. */
const TAP = 350;

/** Ignore the click and context menu that follow the current touch. */
function swallowRelease(): void {
  const listening = new AbortController();
  const options = { signal: listening.signal, capture: true, passive: false };
  const swallow = (event: Event) => {
    // Synthetic clicks pass.
    if (!event.isTrusted) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.type === "click") listening.abort();
  };
  const end = () => setTimeout(() => listening.abort(), TAP);
  for (const type of ["click", "contextmenu", "touchend"]) {
    window.addEventListener(type, swallow, options);
  }
  window.addEventListener("pointerup", end, options);
  window.addEventListener("pointercancel", end, options);
}
