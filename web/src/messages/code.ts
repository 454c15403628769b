/** Code blocks: language, copy button, playgrounds. */

import type { Store } from "../live/store.svelte";
import { words } from "../words/index.svelte";
import { actions } from "./actions.svelte";

export function dressCode(block: HTMLElement, store: Store): void {
  const pre = block.querySelector("pre");
  const code = block.querySelector("code");
  if (!pre || !code) return;
  // Focusable, so that keys scroll long lines.
  pre.tabIndex = 0;
  const language = block.dataset["codeLanguage"];
  const bar = document.createElement("div");
  bar.className = "code-bar";
  if (language) {
    const name = document.createElement("span");
    name.textContent = language;
    bar.append(name);
    const source = code.textContent ?? "";
    for (const place of store.playgrounds) {
      if (place.pygments_language.toLowerCase() !== language.toLowerCase()) continue;
      const link = document.createElement("a");
      link.href = place.url_template.replace(
        /\{\??code\*?\}/,
        encodeURIComponent(source.trimEnd()),
      );
      link.textContent = words.messages.tryIn({ place: place.name });
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      bar.append(link);
    }
  }
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words.messages.copy;
  button.addEventListener("click", () => {
    void actions.copy(code.textContent ?? "", words.messages.codeCopied);
  });
  bar.append(button);
  block.prepend(bar);
}
