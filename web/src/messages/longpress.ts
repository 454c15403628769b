/** A long press with a finger: what a click on "more" does where there is no pointer to hover with. */

import { swallowRelease } from "../ui/release";

const LONG = 450;
/** A finger that moves further than this scrolls, in pixels. */
const STILL = 8;

/** For `{@attach longPress(…)}`: called with what was pressed. */
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
        // What opens under the finger is not meant by its release.
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
