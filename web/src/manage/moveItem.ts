/** Move an item by some places, within the list. */
export function moveItem<T>(list: readonly T[], one: T, step: number): T[] {
  const at = list.indexOf(one);
  const to = Math.min(Math.max(at + step, 0), list.length - 1);
  const rest = list.filter((_, index) => index !== at);
  return at < 0 ? [...list] : [...rest.slice(0, to), one, ...rest.slice(to)];
}
