import { onLeaving } from "./leaving";
import { isTouched } from "./touched";

/** What one types into. */
const FIELD =
  ":is(textarea, [contenteditable=true], input:is(:not([type]), [type=text], [type=search], [type=password], [type=url], [type=email]))";

/**
 * For a dialog: shows it over the page, with the focus in its first field of text where that brings
 * up no keyboard over it, and when it goes gives the focus, with the caret, back to where it was. It
 * goes with the view that it lies over.
 */
export function modal(dialog: HTMLDialogElement): () => void {
  const before = document.activeElement;
  const caret = isText(before) ? ([before.selectionStart, before.selectionEnd] as const) : null;
  dialog.showModal();
  if (!isTouched()) {
    dialog.querySelector<HTMLElement>(`${FIELD}:not([readonly], :disabled)`)?.focus();
  }
  const stop = onLeaving(() => dialog.close());
  return () => {
    stop();
    const { activeElement } = document;
    const isFree =
      !activeElement ||
      activeElement === document.body ||
      activeElement === before ||
      dialog.contains(activeElement);
    if (dialog.open) dialog.close();
    if (!isFree || !(before instanceof HTMLElement)) return;
    // Chromium leaves a field that gets the focus back from a dialog without a caret.
    requestAnimationFrame(() => {
      const now = document.activeElement;
      if (!before.isConnected || (now !== before && now !== document.body)) return;
      before.blur();
      before.focus({ preventScroll: true });
      if (caret && isText(before)) before.setSelectionRange(...caret);
    });
  };
}

function isText(element: unknown): element is HTMLInputElement | HTMLTextAreaElement {
  return (
    element instanceof HTMLTextAreaElement ||
    (element instanceof HTMLInputElement && /^(text|search|url|tel|password)$/.test(element.type))
  );
}
