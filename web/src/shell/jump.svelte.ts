/** The state of the search box. */

export type JumpMode = "search" | "jump" | "people";

class Jump {
  mode = $state<JumpMode | null>(null);
  /** Initial text. */
  text = $state("");

  open(mode: JumpMode, text = ""): void {
    this.mode = mode;
    this.text = text;
  }

  close(): void {
    this.mode = null;
  }
}

export const jump = new Jump();
