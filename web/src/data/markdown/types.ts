/** What the editor shows of Markdown, by positions in the text. */

export interface Mark {
  from: number;
  to: number;
  look: "strong" | "em" | "del" | "code" | "link" | "number";
}

/** Markup that is visible only at the caret. */
export interface Sign {
  from: number;
  to: number;
  /** First and last caret position that reveals it. */
  first: number;
  last: number;
  /** The block it begins: an item's marker is shown as a bullet. */
  begins?: "item" | "quote" | "head";
}

/** A mention or link that is shown as a whole. */
export interface Chip {
  from: number;
  to: number;
  text: string;
  look: "mention" | "silent" | "place";
}

export type LineLook = "item" | "quote" | "code" | "fence" | "head";

/** A line with block formatting. */
export interface Line {
  from: number;
  looks: readonly LineLook[];
  /** Nesting depth of a list item. */
  depth: number;
}

export interface Formatting {
  marks: Mark[];
  signs: Sign[];
  chips: Chip[];
  lines: Line[];
}

/** Names for mentions and links; null if unknown. */
export interface Names {
  person: (name: string, id: number | null) => string | null;
  group: (name: string) => string | null;
  channel: (name: string) => string | null;
  topic: (name: string) => string;
}
