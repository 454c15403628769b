/** Marks the field of a dialog to focus first. */
export function first(node: HTMLElement): void {
  node.setAttribute("autofocus", "");
}
