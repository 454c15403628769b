/** Arrow keys, j, and k move through a view's rows. */

import { register } from "../shell/shortcuts";

/** Rows are links with `data-row`. Returns a function that stops. */
export function navigateRows(list: () => HTMLElement | undefined): () => void {
  const rows = () => [...(list()?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const step = (by: number) => () => {
    const all = rows();
    if (!all.length) return false;
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
    all[Math.max(0, Math.min(to, all.length - 1))]?.focus();
    return true;
  };
  const end = (last: boolean) => () => {
    const row = last ? rows().at(-1) : rows()[0];
    row?.focus();
    return row !== undefined;
  };
  return register({
    ArrowDown: step(1),
    ArrowUp: step(-1),
    j: step(1),
    k: step(-1),
    Home: end(false),
    End: end(true),
  });
}
