/** For the field of a dialog that is to have the focus when it opens. */
export function first(node: HTMLElement): void {
  node.setAttribute("autofocus", "");
}
