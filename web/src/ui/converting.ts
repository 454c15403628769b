/** Whether a key belongs to an input method, as for Japanese, where Enter confirms a choice. Safari
 * sends the key after the composition, recognizable only by its code. */
export function isConverting(event: KeyboardEvent): boolean {
  return event.isComposing || (event.keyCode === 229 && /^(Enter|Escape)$/.test(event.key));
}
