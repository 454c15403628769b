/** Conversations in windows of their own, and next to the current view. */

import { layout } from "./layout.svelte";

/** Whether this window shows a single conversation, without the sidebar. */
export const isSingle = new URLSearchParams(window.location.search).has("window");

/** Whether another window shows this one next to its view. */
export const isEmbedded = isSingle && window.parent !== window;

/** The address of a view in a window of its own. */
export function windowUrl(fragment: string): string {
  return `/?window#${fragment}`;
}

export function openWindow(fragment: string): void {
  window.open(windowUrl(fragment), "_blank", "popup,noopener,width=560,height=760");
}

export function openBeside(fragment: string): void {
  layout.beside = fragment;
}
