/** Whether one points with fingers, and a field that has the focus brings up a keyboard. */
export function isTouched(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}
