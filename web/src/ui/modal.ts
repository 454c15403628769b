import { onNavigation, isTouched } from "./dom";

/** Text fields. */
const FIELD =
  ":is(textarea, [contenteditable=true], input:is(:not([type]), [type=text], [type=search], [type=password], [type=url], [type=email]))";

/** Show a dialog modally, focus its first field unless that opens an on-screen keyboard, and return
 * focus and caret when it closes: in the next frame, since Chromium loses the caret when focus returns
 * from a dialog. It closes on navigation. */
export function modal(
  dialog: HTMLDialogElement,
  show = () => dialog.showModal(),
  schedule: (restore: () => void) => unknown = requestAnimationFrame,
): () => void {
  const before = document.activeElement;
  const caret = isText(before) ? ([before.selectionStart, before.selectionEnd] as const) : null;
  show();
  if (!isTouched()) {
    dialog.querySelector<HTMLElement>(`${FIELD}:not([readonly], :disabled)`)?.focus();
  }
  const stop = onNavigation(() => dialog.close());
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
    schedule(() => {
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
