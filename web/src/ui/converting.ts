/**
 * Whether a key is for what writes signs of several keys, as for Japanese: Enter chooses there, and
 * sends nothing. Safari tells of it once the choice is made, and says so by the code alone.
 */
export function isConverting(event: KeyboardEvent): boolean {
  return event.isComposing || (event.keyCode === 229 && /^(Enter|Escape)$/.test(event.key));
}
