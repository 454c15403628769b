/** Long press as the touch equivalent of "more". */

import { swallowRelease } from "../ui/release";

const LONG = 450;
/** Movement in pixels that counts as scrolling. */
const STILL = 8;

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
      }, LONG);
    };
    const move = (event: PointerEvent) => {
      if (Math.hypot(event.clientX - at.x, event.clientY - at.y) > STILL) stop();
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
