import { EditorState } from "@codemirror/state";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { hard } from "../../data/markdown/fixtures";
import {
  blockMarkerAt,
  decorationsOf,
  setFocused,
  setFormatted,
  setHeld,
  setNames,
  formattedExtension,
} from "./decorations";

const NAMES = {
  person: (name: string) => name,
  group: (name: string) => name,
  channel: (name: string) => (name.includes(">") ? null : name),
  topic: (name: string) => name,
};

function stateOf(doc: string, at = 0): EditorState {
  const extensions = [formattedExtension, EditorState.lineSeparator.of("\n")];
  const state = EditorState.create({ doc, selection: { anchor: at }, extensions });
  return state.update({ effects: setNames.of(NAMES) }).state;
}

/** The visible text, with replacements in braces. */
function seen(state: EditorState): string {
  let output = "";
  let at = 0;
  decorationsOf(state).between(0, state.doc.length, (from, to, { spec }) => {
    // Replacements have no class, tag, or attributes.
    if (from === to || "class" in spec || "tagName" in spec || "attributes" in spec) return;
    output += state.sliceDoc(at, from) + (spec["widget"] ? "{}" : "");
    at = to;
  });
  return output + state.sliceDoc(at);
}

test("switching to formatted and back keeps the Markdown", () => {
  const letters = fc.array(fc.tuple(fc.nat(), fc.constantFrom("x", " ", "*", "\n", "é")));
  fc.assert(
    fc.property(hard, letters, (text, typed) => {
      let state = stateOf(text);
      let expected = text;
      for (const [place, letter] of typed) {
        state = state.update({ effects: setFormatted.of(true) }).state;
        expect(state.doc.toString()).toBe(expected);
        const at = place % (expected.length + 1);
        const changes = { from: at, insert: letter };
        state = state.update({ changes, selection: { anchor: at + letter.length } }).state;
        expected = expected.slice(0, at) + letter + expected.slice(at);
        expect(state.doc.toString()).toBe(expected);
        state = state.update({ effects: setFormatted.of(false) }).state;
        expect(state.doc.toString()).toBe(expected);
        expect(seen(state)).toBe(expected);
      }
    }),
  );
});

test("markup is visible at the caret, and hidden without focus", () => {
  const text = "* **a** b @**Ann** `c`";
  let state = stateOf(text).update({ effects: setFormatted.of(true) }).state;
  const at = (caret: number) => {
    state = state.update({ selection: { anchor: caret } }).state;
    return seen(state);
  };
  expect(at(4)).toBe("{}a b {} c");

  state = state.update({ effects: setFocused.of(true) }).state;
  expect(at(4)).toBe("{}**a** b {} c");
  expect(at(0)).toBe("* a b {} c");
  expect(at(2)).toBe("{}**a** b {} c");
  expect(at(12)).toBe("{}a b {} c");
  expect(at(text.length)).toBe("{}a b {} `c`");
  expect(blockMarkerAt(state, 2)).toMatchObject({ from: 0, to: 2 });
  expect(blockMarkerAt(state, 4)).toBeNull();

  // The layout stays still under the mouse.
  state = state.update({ effects: setHeld.of(true) }).state;
  expect(at(4)).toBe("{}a b {} `c`");
  state = state.update({ effects: setHeld.of(false) }).state;
  expect(seen(state)).toBe("{}**a** b {} c");
});
