/** A CodeMirror editor that shows formatted Markdown, with a field's interface. */

import { history, redo, standardKeymap, undo } from "@codemirror/commands";
import {
  Compartment,
  EditorSelection,
  EditorState,
  Prec,
  Transaction,
  type Extension,
} from "@codemirror/state";
import { EditorView, keymap, type ViewUpdate } from "@codemirror/view";
import { StyleModule } from "style-mod";
import type { Names } from "../../data/markdown/types";
import type { TextSelection } from "../../data/textEdits";
import type { Field } from "../composition.svelte";
import {
  blockMarkerAt,
  setFocused,
  setFormatted,
  setHeld,
  setNames,
  formattedExtension,
  lineTextStart,
} from "./decorations";

export interface EditorListeners {
  typed: () => void;
  /** The caret moved. */
  moved: () => void;
  key: (event: KeyboardEvent) => void;
  paste: (event: ClipboardEvent) => void;
  focused: (is: boolean) => void;
}

/** Attributes of text fields that code editors lack. */
const INPUT_ATTRIBUTES = { spellcheck: "true", autocorrect: "on", autocapitalize: "sentences" };

/** The layout stays still this long after a click, so that a double click hits. */
const DOUBLE_CLICK = 400;

const KEYS = [
  { key: "Mod-z", run: undo, preventDefault: true },
  { key: "Mod-y", mac: "Mod-Shift-z", run: redo, preventDefault: true },
  { linux: "Ctrl-Shift-z", win: "Ctrl-Shift-z", run: redo, preventDefault: true },
  { key: "Backspace", run: withoutBeginning },
  { key: "Home", mac: "Cmd-ArrowLeft", run: toText },
];

/** Backspace deletes a list or quote marker as a whole. */
function withoutBeginning(view: EditorView): boolean {
  const { main } = view.state.selection;
  const sign = main.empty ? blockMarkerAt(view.state, main.head) : null;
  if (!sign) return false;
  view.dispatch({ changes: { from: sign.from, to: sign.to }, userEvent: "delete.backward" });
  return true;
}

/** Restore the browser's selection from the editor's. When the editor is hidden for less than a
 * frame, the focus stays, but the caret jumps to the start, and CodeMirror would take that for a
 * user action. */
function aim(view: EditorView): void {
  const selection = view.contentDOM.ownerDocument.getSelection();
  if (!selection || view.composing) return;
  const { anchor, head } = view.state.selection.main;
  const { anchorNode, anchorOffset, focusNode, focusOffset } = selection;
  const isAt = (at: number, node: Node | null, offset: number) =>
    view.contentDOM.contains(node) && node !== null && view.posAtDOM(node, offset) === at;
  if (isAt(anchor, anchorNode, anchorOffset) && isAt(head, focusNode, focusOffset)) return;
  const [from, to] = [view.domAtPos(anchor), view.domAtPos(head)];
  selection.setBaseAndExtent(from.node, from.offset, to.node, to.offset);
}

/** Home goes to the start of the visible text, then of the line. */
function toText(view: EditorView): boolean {
  const { main } = view.state.selection;
  const begin = lineTextStart(view.state, view.state.doc.lineAt(main.head).from);
  if (main.head <= begin || view.moveToLineBoundary(main, false).head >= begin) return false;
  view.dispatch({ selection: { anchor: begin }, userEvent: "select", scrollIntoView: true });
  return true;
}

export class Editor implements Field {
  readonly #view: EditorView;
  readonly #history = new Compartment();
  readonly #attributes = new Compartment();
  #isGone = false;
  #isHeld = false;
  #release: ReturnType<typeof setTimeout> | undefined;

  constructor(
    parent: HTMLElement,
    begin: TextSelection,
    private readonly listeners: EditorListeners,
  ) {
    adoptStyles();
    this.#view = new EditorView({
      parent,
      state: EditorState.create({
        doc: begin.text,
        selection: EditorSelection.single(begin.start, begin.end),
        extensions: this.#extensions(),
      }),
    });
    window.addEventListener("mouseup", this.#released);
  }

  get value(): string {
    return this.#view.state.doc.toString();
  }

  get selectionStart(): number {
    return this.#view.state.selection.main.from;
  }

  get selectionEnd(): number {
    return this.#view.state.selection.main.to;
  }

  focus(): void {
    this.#view.focus();
    aim(this.#view);
  }

  setSelectionRange(start: number, end: number): void {
    const { length } = this.#view.state.doc;
    const selection = { anchor: Math.min(start, length), head: Math.min(end, length) };
    this.#view.dispatch({ selection, scrollIntoView: true });
  }

  put(from: number, to: number, text: string): void {
    const caret = from + text.length;
    this.#view.dispatch({
      changes: { from, to, insert: text },
      selection: { anchor: caret },
      userEvent: "input",
      scrollIntoView: true,
    });
  }

  /** Replace the text without an undo step. */
  reset(text: string): void {
    const view = this.#view;
    view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: text },
      selection: { anchor: text.length },
      effects: this.#history.reconfigure([]),
      annotations: Transaction.remote.of(true),
    });
    view.dispatch({ effects: this.#history.reconfigure(history()) });
  }

  /** Show formatted or plain Markdown. */
  format(is: boolean): void {
    this.#view.dispatch({ effects: setFormatted.of(is), scrollIntoView: this.#view.hasFocus });
  }

  name(names: Names): void {
    this.#view.dispatch({ effects: setNames.of(names) });
  }

  /** Set ARIA attributes. */
  describe(attributes: Record<string, string>): void {
    const is = EditorView.contentAttributes.of({ ...INPUT_ATTRIBUTES, ...attributes });
    this.#view.dispatch({ effects: this.#attributes.reconfigure(is) });
  }

  destroy(): void {
    this.#isGone = true;
    clearTimeout(this.#release);
    window.removeEventListener("mouseup", this.#released);
    this.#view.destroy();
  }

  #hold(is: boolean): void {
    clearTimeout(this.#release);
    if (is === this.#isHeld) return;
    this.#isHeld = is;
    this.#view.dispatch({ effects: setHeld.of(is) });
  }

  #released = () => {
    if (this.#isHeld) this.#release = setTimeout(() => this.#hold(false), DOUBLE_CLICK);
  };

  #extensions(): Extension {
    const { listeners } = this;
    const handled = (event: Event) => event.defaultPrevented;
    return [
      Prec.highest(
        EditorView.domEventHandlers({
          keydown: (event) => {
            this.#hold(false);
            listeners.key(event);
            return handled(event);
          },
          paste: (event) => {
            listeners.paste(event);
            return handled(event);
          },
        }),
      ),
      EditorView.domEventObservers({
        focus: (_, view) => {
          listeners.focused(true);
          view.dispatch({ effects: setFocused.of(true) });
          // Browsers would put the caret at the start.
          view.focus();
          aim(view);
        },
        // Deferred: blur also fires during removal, when changes aren't allowed.
        blur: (_, view) => queueMicrotask(() => this.#left(view)),
        mousedown: ({ button }) => {
          if (button === 0) this.#hold(true);
        },
      }),
      EditorView.updateListener.of((update) => this.#updated(update)),
      formattedExtension,
      this.#history.of(history()),
      this.#attributes.of([]),
      keymap.of([...KEYS, ...standardKeymap]),
      // Preserve every character, including line separators.
      EditorState.lineSeparator.of("\n"),
      EditorView.clipboardInputFilter.of((text) => text.replace(/\r\n?/g, "\n")),
      EditorView.lineWrapping,
      EditorView.perLineTextDirection.of(true),
      // Don't announce English phrases; screen readers read the field anyway.
      EditorState.phrases.of({ "Selection deleted": "" }),
    ];
  }

  #left(view: EditorView): void {
    if (this.#isGone || view.hasFocus) return;
    this.listeners.focused(false);
    view.dispatch({ effects: setFocused.of(false) });
  }

  #updated(update: ViewUpdate): void {
    if (update.transactions.some((transaction) => transaction.annotation(Transaction.remote)))
      return;
    if (update.docChanged) this.listeners.typed();
    else if (update.selectionSet) this.listeners.moved();
  }
}

/** The page's policy blocks CodeMirror's `<style>` element but allows constructable style sheets,
 * which it uses in shadow trees. Create one there and adopt it in the document. */
function adoptStyles(): void {
  const tree = document.createElement("div").attachShadow({ mode: "open" });
  StyleModule.mount(tree, new StyleModule({}));
  for (const set of Object.getOwnPropertySymbols(tree)) {
    if (!(set in document)) {
      Object.defineProperty(document, set, { value: Reflect.get(tree, set) });
    }
  }
}
