/** Renders Markdown formatted in the editor through decorations. The text itself stays unchanged;
 * markup is hidden away from the caret. */

import {
  EditorState,
  RangeSet,
  StateEffect,
  StateField,
  type Extension,
  type Range,
  type Transaction,
} from "@codemirror/state";
import { Decoration, EditorView, WidgetType, type DecorationSet } from "@codemirror/view";
import { formatMarkdown } from "../../data/markdown/blocks";
import { type Chip, type Line, type Names, type Formatting } from "../../data/markdown/types";

/** Formatted or plain. */
export const setFormatted = StateEffect.define<boolean>();
/** Known names changed. */
export const setNames = StateEffect.define<Names>();
/** Whether a mouse button is down: the layout must not move. */
export const setHeld = StateEffect.define<boolean>();
/** Whether the editor is focused: only then markup is revealed. */
export const setFocused = StateEffect.define<boolean>();

interface Showing {
  isFormatted: boolean;
  names: Names;
  isHeld: boolean;
  hasFocus: boolean;
  formatting: Formatting | null;
  /** Positions that reveal markup: the ends of the selection. */
  ends: readonly number[];
  drawn: DecorationSet;
  /** Ranges that the caret skips. */
  whole: DecorationSet;
}

class ChipWidget extends WidgetType {
  constructor(private readonly chip: Chip) {
    super();
  }

  override eq({ chip }: ChipWidget): boolean {
    return chip.text === this.chip.text && chip.look === this.chip.look;
  }

  override toDOM(): HTMLElement {
    const element = document.createElement("span");
    element.className = `chip ${this.chip.look}`;
    element.dir = "auto";
    element.textContent = this.chip.text;
    return element;
  }

  override ignoreEvent(): boolean {
    return false;
  }
}

class Bullet extends WidgetType {
  override eq(): boolean {
    return true;
  }

  override toDOM(): HTMLElement {
    const element = document.createElement("span");
    element.className = "bullet";
    element.textContent = "•";
    return element;
  }

  override ignoreEvent(): boolean {
    return false;
  }
}

const BULLET = Decoration.replace({ widget: new Bullet() });
const HIDDEN = Decoration.replace({});
const SIGN = Decoration.mark({ class: "sign" });
const MARKS = {
  strong: Decoration.mark({ tagName: "strong" }),
  em: Decoration.mark({ tagName: "em" }),
  del: Decoration.mark({ tagName: "del" }),
  code: Decoration.mark({ tagName: "code" }),
  link: Decoration.mark({ class: "link" }),
  number: Decoration.mark({ class: "number" }),
};
/** Each line has its own direction. */
const TEXT = Decoration.line({ attributes: { dir: "auto" } });

function lineOf({ looks, depth }: Line): Decoration {
  const isCode = looks.includes("code");
  const attributes: Record<string, string> = {
    class: looks.join(" "),
    dir: isCode ? "ltr" : "auto",
  };
  if (looks.includes("item")) attributes["style"] = `--depth: ${Math.min(depth, 8)}`;
  // Don't spellcheck code.
  if (isCode) attributes["spellcheck"] = "false";
  return Decoration.line({ attributes });
}

function draw(state: EditorState, now: Omit<Showing, "drawn" | "whole">): Showing {
  const { formatting, ends } = now;
  const drawn: Range<Decoration>[] = [];
  const whole: Range<Decoration>[] = [];
  const lines = new Map(formatting?.lines.map((line) => [line.from, line] as const));
  for (let number = 1; number <= state.doc.lines; number += 1) {
    const { from } = state.doc.line(number);
    const line = lines.get(from);
    drawn.push((line ? lineOf(line) : TEXT).range(from));
  }
  for (const { from, to, look } of formatting?.marks ?? []) drawn.push(MARKS[look].range(from, to));
  for (const { from, to, first, last, begins } of formatting?.signs ?? []) {
    const isSeen = ends.some((end) => first <= end && end <= last);
    const look = isSeen ? SIGN : begins === "item" ? BULLET : HIDDEN;
    drawn.push(look.range(from, to));
  }
  for (const chip of formatting?.chips ?? []) {
    const range = Decoration.replace({ widget: new ChipWidget(chip) }).range(chip.from, chip.to);
    drawn.push(range);
    whole.push(range);
  }
  return { ...now, drawn: RangeSet.of(drawn, true), whole: RangeSet.of(whole, true) };
}

function endsOf(state: EditorState): number[] {
  const { anchor, head } = state.selection.main;
  return [anchor, head];
}

function after(before: Showing, change: Transaction): Showing {
  let { isFormatted, names, isHeld, hasFocus, formatting, ends } = before;
  let isOther = change.docChanged;
  for (const effect of change.effects) {
    if (effect.is(setFormatted)) isFormatted = effect.value;
    else if (effect.is(setNames)) names = effect.value;
    else if (effect.is(setHeld)) isHeld = effect.value;
    else if (effect.is(setFocused)) hasFocus = effect.value;
    else continue;
    isOther ||= effect.is(setFormatted) || effect.is(setNames);
  }
  if (isOther) formatting = isFormatted ? formatMarkdown(change.newDoc.toString(), names) : null;
  if (!hasFocus) ends = [];
  else if (!isHeld) ends = endsOf(change.state);
  else if (change.docChanged) ends = ends.map((end) => change.changes.mapPos(end));
  const now = { isFormatted, names, isHeld, hasFocus, formatting, ends };
  return isOther || ends.join() !== before.ends.join()
    ? draw(change.state, now)
    : { ...before, ...now };
}

const showing = StateField.define<Showing>({
  create: (state) =>
    draw(state, {
      isFormatted: false,
      names: { person: () => null, group: () => null, channel: () => null, topic: String },
      isHeld: false,
      hasFocus: false,
      formatting: null,
      ends: [],
    }),
  update: after,
  provide: (field) => [
    EditorView.decorations.from(field, ({ drawn }) => drawn),
    EditorView.atomicRanges.of((view) => view.state.field(field).whole),
  ],
});

/** The extension; plain Markdown until `setFormatted`. */
export const formattedExtension: Extension = showing;

/** The decorations of a state. */
export function decorationsOf(state: EditorState): DecorationSet {
  return state.field(showing).drawn;
}

/** Start of a line's visible text. */
export function lineTextStart(state: EditorState, lineFrom: number): number {
  let begin = lineFrom;
  for (const { from, to, begins } of state.field(showing).formatting?.signs ?? []) {
    if (begins && from === begin) begin = to;
  }
  return begin;
}

/** The list, quote, or heading marker that ends at a position; null if there isn't any. */
export function blockMarkerAt(state: EditorState, at: number): { from: number; to: number } | null {
  const { formatting } = state.field(showing);
  return formatting?.signs.find(({ begins, to }) => begins && to === at) ?? null;
}
