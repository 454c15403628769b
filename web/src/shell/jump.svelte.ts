/** The box that searches and jumps: open or not, and how it begins. */

export type JumpMode = "search" | "jump" | "people";

class Jump {
  mode = $state<JumpMode | null>(null);
  /** What stands in it at first. */
  text = $state("");

  open(mode: JumpMode, text = ""): void {
    if (this.mode === null) window.addEventListener("keydown", this.#early, { capture: true });
    this.mode = mode;
    this.text = text;
  }

  /** The box is there, and takes the keys itself. */
  shown(): void {
    window.removeEventListener("keydown", this.#early, { capture: true });
  }

  close(): void {
    this.shown();
    this.mode = null;
  }

  /** While the box is loaded, what is typed is meant for it, and for nothing else. */
  readonly #early = (event: KeyboardEvent): void => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    if (key === "Escape") this.close();
    else if (key === "Backspace") this.text = this.text.slice(0, -1);
    else if (key.length === 1) this.text += key;
    else if (key !== "Enter" && key !== "Tab") return;
    event.preventDefault();
    event.stopPropagation();
  };
}

export const jump = new Jump();
