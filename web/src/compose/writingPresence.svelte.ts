/** Whether someone is writing in a box: the focus is in it, or in a picker opened from it. */

import { on } from "svelte/events";

/** Menus, pickers, and dialogs, which give the focus back. */
const PASSING = "[popover], dialog";

export class WritingPresence {
  writing = $state(false);

  attach = (box: HTMLElement) => {
    let isPressed = false;

    const look = () => {
      const { activeElement } = document;
      if (box.contains(activeElement)) this.writing = true;
      // Another window may have the focus for a while.
      else if (document.hasFocus() && !activeElement?.closest(PASSING)) this.writing = false;
    };
    // A box that shrinks under a press would move what is being pressed: wait until it ends.
    const released = () => {
      isPressed = false;
      setTimeout(look);
    };
    const moved = () => {
      if (!isPressed || box.contains(document.activeElement)) look();
    };
    const stops = [
      on(document, "focusin", moved),
      on(document, "focusout", () => !isPressed && setTimeout(moved)),
      on(document, "pointerdown", () => (isPressed = true), { capture: true }),
      on(document, "pointerup", released, { capture: true }),
      on(document, "pointercancel", released, { capture: true }),
    ];
    look();
    return () => stops.forEach((stop) => stop());
  };
}
