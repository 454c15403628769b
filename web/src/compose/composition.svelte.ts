/** The text in a compose box with its edits and uploads. */

import { flushSync } from "svelte";
import { joinParts, splitParts, type FilePart, type QuotePart } from "../data/messageParts";
import { fileLink, insertText, insertBlock, lengthOf, type TextSelection } from "../data/textEdits";
import { Uploads, type Upload } from "../live/uploads.svelte";
import { words } from "../words/index.svelte";

/** Placeholders of running uploads; others are remains of interrupted ones. */
const awaited = new Set<string>();

/** Placeholders of interrupted uploads. */
const CUT_OFF = /\n?\[[^\]\n]*…\]\(\) ?/g;

/** A `<textarea>`, or an editor with its interface. */
export interface Field {
  readonly value: string;
  readonly selectionStart: number;
  readonly selectionEnd: number;
  focus(): void;
  setSelectionRange(start: number, end: number): void;
  /** Replace a range undoably; for fields where browsers can't. */
  put?(from: number, to: number, text: string): void;
}

export class Composition {
  /** The field's text. */
  text = $state("");
  /** Quotes before it, and files after it. */
  quotes = $state.raw<readonly QuotePart[]>([]);
  files = $state.raw<readonly FilePart[]>([]);
  /** Caret position for suggestions; -1 with a selection. */
  caret = $state(0);
  /** Whether the preview is shown. */
  preview = $state(false);
  /** Whether its field is hidden. */
  hidden = false;
  readonly uploads = new Uploads((upload, stored) =>
    this.#arrived(
      upload,
      stored ? fileLink(stored.filename || upload.name, stored.url) : "",
      stored?.url,
    ),
  );

  #field: Field | null = null;
  #placeholders = new Map<number, string>();
  /** Pictures uploaded here by their links, so that they can be edited. */
  #pictures = new Map<string, File>();

  /** `changed` is called after each change; `left` for changes after the field was hidden
   * or removed. */
  constructor(
    content: string,
    private readonly changed: () => void = () => {},
    private readonly left: (what: string, by: string) => void = () => {},
  ) {
    this.content = content.replace(CUT_OFF, (place) => (awaited.has(place.trim()) ? place : ""));
  }

  /** The whole message. Not derived, since files arrive and are read after the box is gone. */
  get content(): string {
    return joinParts(this);
  }

  /** Length as the server counts. */
  get length(): number {
    return lengthOf(this.content);
  }

  set content(content: string) {
    const { quotes, text, files } = splitParts(content);
    if (quotes.length || this.quotes.length) this.quotes = quotes;
    if (files.length || this.files.length) this.files = files;
    this.text = text;
    this.caret = text.length;
  }

  /** Attaches to a field and keeps its height. */
  attach = (field: Field) => {
    this.#field = field;
    return () => {
      // Another field may have replaced it.
      if (this.#field === field) this.#field = null;
    };
  };

  get writing(): TextSelection {
    const field = this.#field;
    const end = this.text.length;
    return {
      text: this.text,
      start: field?.selectionStart ?? end,
      end: field?.selectionEnd ?? end,
    };
  }

  /** Focus the text, leaving the preview, as hidden fields can't be focused. */
  focus(): void {
    if (this.preview) {
      this.preview = false;
      flushSync();
    }
    this.#field?.focus();
  }

  /** Focus the end of the text. */
  focusEnd(): void {
    this.focus();
    this.toEnd();
  }

  /** Move the caret to the end without focusing. */
  toEnd(): void {
    this.#field?.setSelectionRange(this.text.length, this.text.length);
    this.noteCaret();
  }

  noteCaret(): void {
    const field = this.#field;
    if (!field) return;
    this.caret = field.selectionStart === field.selectionEnd ? field.selectionStart : -1;
  }

  /** The user typed. */
  typed(): void {
    if (!this.#field) return;
    this.text = this.#field.value;
    this.noteCaret();
    this.changed();
  }

  /** Why it can't be sent yet: an upload is running or failed. */
  get awaits(): "file" | "failed" | null {
    if (
      this.uploads.list.some(
        (upload) => upload.state === "failed" && this.#placeholders.has(upload.id),
      )
    ) {
      return "failed";
    }
    // Includes uploads of an earlier box.
    return [...awaited].some((place) => this.content.includes(place)) ? "file" : null;
  }

  /** Replace the whole text; Ctrl+Z restores it. */
  set(text: string): void {
    this.apply(() => ({ text, start: text.length, end: text.length }));
  }

  /** Edit the text undoably. */
  apply(change: (writing: TextSelection) => TextSelection | null): boolean {
    const before = this.writing;
    const after = change(before);
    if (!after) return false;
    const field = this.#field;
    if (field && field.value === before.text) {
      this.focus();
      if (after.text !== before.text) retype(field, after.text);
      field.setSelectionRange(after.start, after.end);
    }
    this.text = after.text;
    this.noteCaret();
    this.changed();
    return true;
  }

  insert(text: string): void {
    this.apply((writing) => insertText(writing, text));
  }

  /** Add a whole message, including its quotes and files if the box is empty. */
  take(content: string): void {
    if (this.content) {
      this.insertBlock(content);
      return;
    }
    this.content = content;
    this.focusEnd();
    this.changed();
  }

  insertBlock(text: string): void {
    this.apply((writing) => insertBlock(writing, text));
  }

  /** Add a quote before the text. */
  quote(markdown: string): void {
    const { quotes, text } = splitParts(markdown);
    if (text.trim()) {
      this.insertBlock(markdown);
      return;
    }
    this.quotes = [...this.quotes, ...quotes];
    this.focusEnd();
    this.changed();
  }

  unquote(quote: QuotePart): void {
    this.quotes = this.quotes.filter((other) => other !== quote);
    this.focus();
    this.changed();
  }

  addFiles(files: Iterable<File>, maxBytes: number): void {
    for (const file of files) {
      const upload = this.uploads.add(file, maxBytes);
      if (upload.size > maxBytes) continue;
      const markdown = this.#place(upload.name);
      this.#placeholders.set(upload.id, markdown);
      awaited.add(markdown);
      this.files = [...this.files, { markdown, name: upload.name, url: "" }];
    }
    this.changed();
  }

  /** Add a placeholder for a file that isn't ready, at most `most` bytes, which may arrive after
   * the field is gone. Null removes it. */
  addLater(name: string, coming: Promise<File | null>, maxBytes: number): void {
    const markdown = this.#place(name);
    awaited.add(markdown);
    this.files = [...this.files, { markdown, name, url: "" }];
    this.changed();
    void coming.then((file) => {
      if (file && file.size <= maxBytes) {
        this.#placeholders.set(this.uploads.add(file, maxBytes).id, markdown);
        return;
      }
      this.#settle(markdown, "");
    });
  }

  /** The running upload of a file. */
  uploadOf(file: FilePart): Upload | undefined {
    return this.uploads.list.find((upload) => this.#placeholders.get(upload.id) === file.markdown);
  }

  /** The content of a picture, for editing. Throws if it isn't available anymore. */
  async pictureOf(file: FilePart): Promise<Blob> {
    const known = this.uploadOf(file)?.file ?? this.#pictures.get(file.url);
    if (known) return known;
    const response = await fetch(file.url);
    if (!response.ok) throw new Error(response.statusText);
    return response.blob();
  }

  /** Upload an edited file in place of another one. */
  replaceFile(file: FilePart, edited: File, maxBytes: number): void {
    const at = this.files.findIndex((other) => other.markdown === file.markdown);
    const before = this.files.length;
    this.addFiles([edited], maxBytes);
    // The original stays if the edited file is too large.
    const added = this.files[before];
    if (!added) return;
    const upload = this.uploadOf(file);
    if (upload) this.uploads.cancel(upload.id);
    const others = this.files.filter(
      (other) => other !== added && other.markdown !== file.markdown,
    );
    this.files = at < 0 ? [...others, added] : others.toSpliced(at, 0, added);
    this.changed();
  }

  /** Remove a file and cancel its upload. */
  removeFile(file: FilePart): void {
    const upload = this.uploadOf(file);
    if (upload) this.uploads.cancel(upload.id);
    this.files = this.files.filter((other) => other.markdown !== file.markdown);
    this.focus();
    this.changed();
  }

  /** A unique placeholder for an upload. */
  #place(called: string): string {
    const name = called.replace(/[[\]\n]/g, "");
    for (let number = 1; ; number += 1) {
      const numbered = number === 1 ? name : `${name} (${number})`;
      const place = `[${words.compose.uploading({ name: numbered })}]()`;
      if (!awaited.has(place)) return place;
    }
  }

  #arrived(upload: Upload, link: string, url?: string): void {
    if (url && upload.preview) this.#pictures.set(url, upload.file);
    const place = this.#placeholders.get(upload.id);
    this.#placeholders.delete(upload.id);
    if (place) this.#settle(place, link);
  }

  /** Replace a placeholder with the link, or remove it if the upload failed. */
  #settle(place: string, link: string): void {
    awaited.delete(place);
    const { files } = splitParts(link);
    this.files = this.files.flatMap((other) => (other.markdown === place ? files : [other]));
    // Without a shown field, `left` handles the change.
    if (this.#field && !this.hidden) this.changed();
    else this.left(place, link);
  }
}

/** Replace the difference as if typed. */
function retype(field: Field, text: string): void {
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
  const to = before.length - same;
  const insertText = text.slice(from, text.length - same);
  if (field.put) {
    field.put(from, to, insertText);
    return;
  }
  // Commands go to the element with the focus, which a hidden field can't take.
  const area = field as HTMLTextAreaElement;
  if (document.activeElement !== area) {
    area.value = text;
    return;
  }
  field.setSelectionRange(from, to);
  try {
    if (!insertText) document.execCommand("delete");
    else if (!insertedLines(insertText)) document.execCommand("insertText", false, insertText);
  } catch {
    // Fall through to setting the value.
  }
  if (area.value !== text) area.value = text;
}

/** Insert many lines as one edit if possible: Chromium inserts plain text line by line with a
 * layout after each, which takes seconds for a few hundred. */
function insertedLines(text: string): boolean {
  if (!/\n[^]*\n/.test(text)) return false;
  const html = text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return document.execCommand("insertHTML", false, html);
}
