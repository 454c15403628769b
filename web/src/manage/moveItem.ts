/** Move an item by some places, within the list. */
export function moveItem<T>(list: readonly T[], item: T, step: number): T[] {
  const at = list.indexOf(item);
  const to = Math.min(Math.max(at + step, 0), list.length - 1);
  const rest = list.filter((_, index) => index !== at);
  return at < 0 ? [...list] : [...rest.slice(0, to), item, ...rest.slice(to)];
}
