/** A text that is being written in a field: its changes, and the files that go into it. */

import {
  fileLink,
  inserted,
  insertedBlock,
  lengthOf,
  replaced,
  type Writing,
} from "../data/marking";
import { Uploads, type Upload } from "../live/uploads.svelte";
import { words } from "../words/index.svelte";

/** What stands in texts for files that are on their way; others are left of what was cut off. */
const awaited = new Set<string>();

export class Composition {
  content = $state("");
  /** Where the caret is, as far as completing goes; -1 while something is selected. */
  caret = $state(0);
  readonly uploads = new Uploads((upload, stored) =>
    this.#arrived(upload, stored ? fileLink(stored.filename || upload.name, stored.url) : ""),
  );
  readonly length = $derived(lengthOf(this.content));

  #field: HTMLTextAreaElement | null = null;
  #placeholders = new Map<number, string>();

  /** `changed` is called after each change; `left` with changes after the field has gone. */
  constructor(
    content: string,
    private readonly changed: () => void,
    private readonly left: (what: string, by: string) => void = () => {},
  ) {
    this.content = content.replace(/\[[^\]\n]*…\]\(\) ?/g, (place) =>
      awaited.has(place.trim()) ? place : "",
    );
    this.caret = this.content.length;
  }

  /** For a field: takes it, and grows it with what is in it. */
  attach = (field: HTMLTextAreaElement) => {
    this.#field = field;
    return () => {
      this.#field = null;
    };
  };

  get writing(): Writing {
    const field = this.#field;
    const end = this.content.length;
    return {
      text: this.content,
      start: field?.selectionStart ?? end,
      end: field?.selectionEnd ?? end,
    };
  }

  focus(): void {
    this.#field?.focus();
  }

  /** To the end of what is written. */
  focusEnd(): void {
    this.#field?.focus();
    this.#field?.setSelectionRange(this.content.length, this.content.length);
    this.noteCaret();
  }

  noteCaret(): void {
    const field = this.#field;
    if (!field) return;
    this.caret = field.selectionStart === field.selectionEnd ? field.selectionStart : -1;
  }

  /** What was typed into the field. */
  typed(): void {
    if (!this.#field) return;
    this.content = this.#field.value;
    this.noteCaret();
    this.#giveUp();
    this.changed();
  }

  /** Why it cannot be sent yet: a file of the text is on its way, or has failed. */
  get awaits(): "file" | "failed" | null {
    if (this.uploads.list.some((one) => one.state === "failed" && this.#placeholders.has(one.id))) {
      return "failed";
    }
    // Those of a box that was here before are waited for too.
    return [...awaited].some((place) => this.content.includes(place)) ? "file" : null;
  }

  /** Whoever deletes what stands for a file does not want it any more. */
  #giveUp(): void {
    for (const [id, place] of this.#placeholders) {
      if (!this.content.includes(place)) this.uploads.cancel(id);
    }
  }

  /** Another text in place of all (Ctrl-Z brings back what was there). */
  set(text: string): void {
    this.apply(() => ({ text, start: text.length, end: text.length }));
  }

  /** Change the text such that the browser can take it back (Ctrl-Z). */
  apply(change: (writing: Writing) => Writing | null): boolean {
    const before = this.writing;
    const after = change(before);
    if (!after) return false;
    const field = this.#field;
    if (field && field.value === before.text) {
      field.focus();
      if (after.text !== before.text && !retyped(field, after.text)) {
        field.value = after.text;
      }
      field.setSelectionRange(after.start, after.end);
    }
    this.content = after.text;
    this.noteCaret();
    this.changed();
    return true;
  }

  insert(text: string): void {
    this.apply((writing) => inserted(writing, text));
  }

  insertBlock(text: string): void {
    this.apply((writing) => insertedBlock(writing, text));
  }

  addFiles(files: Iterable<File>, most: number): void {
    for (const file of files) {
      const upload = this.uploads.add(file, most);
      if (upload.size > most) continue;
      const place = this.#place(upload);
      this.#placeholders.set(upload.id, place);
      awaited.add(place);
      this.apply((writing) => {
        const before = writing.text.slice(0, writing.start);
        const space = before && !/\s$/.test(before) ? " " : "";
        return inserted(writing, `${space}${place} `);
      });
    }
  }

  /** What stands for a file until it has arrived; another one each time. */
  #place(upload: Upload): string {
    const name = upload.name.replace(/[[\]\n]/g, "");
    const place = `[${words.compose.uploading(name)}]()`;
    const is = [...this.#placeholders.values()].includes(place);
    return is ? `[${words.compose.uploading(`${name} (${upload.id})`)}]()` : place;
  }

  #arrived(upload: Upload, link: string): void {
    const place = this.#placeholders.get(upload.id);
    this.#placeholders.delete(upload.id);
    if (!place) return;
    awaited.delete(place);
    if (!this.#field) {
      this.left(place, link);
      return;
    }
    const focused = document.activeElement === this.#field;
    const after =
      (link === "" ? replaced(this.writing, `${place} `, "") : null) ??
      replaced(this.writing, place, link);
    if (!after) return;
    this.content = after.text;
    this.#field.value = after.text;
    if (focused) this.#field.setSelectionRange(after.start, after.end);
    this.noteCaret();
    this.changed();
  }
}

/** Type what is other in the field, as if by hand. */
function retyped(field: HTMLTextAreaElement, text: string): boolean {
  const before = field.value;
  let from = 0;
  while (from < before.length && from < text.length && before[from] === text[from]) from += 1;
  let same = 0;
  while (
    same < before.length - from &&
    same < text.length - from &&
    before[before.length - 1 - same] === text[text.length - 1 - same]
  ) {
    same += 1;
  }
  field.setSelectionRange(from, before.length - same);
  const news = text.slice(from, text.length - same);
  try {
    return news
      ? document.execCommand("insertText", false, news)
      : document.execCommand("delete", false);
  } catch {
    return false;
  }
}
