/** Whether the primary pointer is touch, so that focused fields open an on-screen keyboard. */
export function isTouched(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}
