import { isConverting, onCloseRequest } from "./dom";
import { modal } from "./modal";

const REACHABLE = ":is(input, button, a[href], textarea, select):not(:disabled, [tabindex='-1'])";

/** Show a dialog that covers the page, as `modal` does but without `showModal`, which makes everything
 * else inert: browsers then compute the style of every element of the page before they paint. Instead,
 * Tab stays within the dialog, and the focus returns to it. It needs `aria-modal`, and must fill the
 * window to take all clicks. */
export function cover(dialog: HTMLDialogElement): () => void {
  const ended = new AbortController();
  const { signal } = ended;
  const close = modal(
    dialog,
    () => dialog.show(),
    (restore) => restore(),
  );
  const stop = onCloseRequest(end);

  /** Return the focus immediately: what's typed next belongs to it. */
  function end() {
    if (signal.aborted) return;
    ended.abort();
    stop();
    close();
    // It may stay rendered.
    const { activeElement } = document;
    if (dialog.contains(activeElement)) (activeElement as HTMLElement).blur();
  }

  const focus = (last: boolean) => {
    const all = [...dialog.querySelectorAll<HTMLElement>(REACHABLE)];
    (last ? all.at(-1) : all[0])?.focus();
  };

  document.addEventListener(
    "focusin",
    ({ target }) => {
      // Something may have opened above it.
      if ((target as Element).closest("dialog, [popover]") || !dialog.open) return;
      focus(false);
    },
    { signal },
  );
  window.addEventListener(
    "keydown",
    (event) => {
      // A modal dialog on top handles its own keys.
      if (document.querySelector("dialog:modal")) return;
      const { activeElement: focused } = document;
      const isHere = dialog.contains(focused) || focused === document.body;
      if (event.defaultPrevented || isConverting(event) || !isHere) return;
      if (event.key === "Escape") end();
      else if (event.key === "Tab") {
        const all = [...dialog.querySelectorAll(REACHABLE)];
        const edge = event.shiftKey ? all[0] : all.at(-1);
        if (focused !== edge && dialog.contains(focused)) return;
        focus(event.shiftKey);
      } else return;
      event.preventDefault();
    },
    { signal },
  );
  return end;
}
