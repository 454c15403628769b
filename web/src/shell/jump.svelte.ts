/** The box that searches and jumps: open or not, and how it begins. */

export type JumpMode = "search" | "jump" | "people";

class Jump {
  mode = $state<JumpMode | null>(null);
  /** What stands in it at first. */
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
