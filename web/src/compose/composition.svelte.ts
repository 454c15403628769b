/** A text that is being written in a field: its changes, and the files that go into it. */

import { flushSync } from "svelte";
import { joined, parted, type FileOf, type QuoteOf } from "../data/attached";
import { fileLink, inserted, insertedBlock, lengthOf, type Writing } from "../data/marking";
import { Uploads, type Upload } from "../live/uploads.svelte";
import { words } from "../words/index.svelte";

/** What stands in texts for files that are on their way; others are left of what was cut off. */
const awaited = new Set<string>();

/** What is left of files whose way was cut off. */
const CUT_OFF = /\n?\[[^\]\n]*…\]\(\) ?/g;

/** What a text is typed into: a `<textarea>`, or what can be used as one. */
export interface Field {
  readonly value: string;
  readonly selectionStart: number;
  readonly selectionEnd: number;
  focus(): void;
  setSelectionRange(start: number, end: number): void;
  /** Put text in place of a part, such that it can be taken back: where the browser cannot. */
  put?(from: number, to: number, text: string): void;
}

export class Composition {
  /** What stands in the field. */
  text = $state("");
  /** What goes before it, and after it. */
  quotes = $state.raw<readonly QuoteOf[]>([]);
  files = $state.raw<readonly FileOf[]>([]);
  /** Where the caret is, as far as completing goes; -1 while something is selected. */
  caret = $state(0);
  /** Whether one sees how it would look, in place of the field. */
  preview = $state(false);
  readonly uploads = new Uploads((upload, stored) =>
    this.#arrived(upload, stored ? fileLink(stored.filename || upload.name, stored.url) : ""),
  );

  #field: Field | null = null;
  #placeholders = new Map<number, string>();

  /** `changed` is called after each change; `left` with changes after the field has gone. */
  constructor(
    content: string,
    private readonly changed: () => void = () => {},
    private readonly left: (what: string, by: string) => void = () => {},
  ) {
    this.content = content.replace(CUT_OFF, (place) => (awaited.has(place.trim()) ? place : ""));
  }

  /** All of the message. (Not derived: files arrive, and are asked for, after the box has gone.) */
  get content(): string {
    return joined(this);
  }

  /** How long it is, as the server counts. */
  get length(): number {
    return lengthOf(this.content);
  }

  set content(content: string) {
    const { quotes, text, files } = parted(content);
    if (quotes.length || this.quotes.length) this.quotes = quotes;
    if (files.length || this.files.length) this.files = files;
    this.text = text;
    this.caret = text.length;
  }

  /** For a field: takes it, and grows it with what is in it. */
  attach = (field: Field) => {
    this.#field = field;
    return () => {
      // Another one may have taken its place.
      if (this.#field === field) this.#field = null;
    };
  };

  get writing(): Writing {
    const field = this.#field;
    const end = this.text.length;
    return {
      text: this.text,
      start: field?.selectionStart ?? end,
      end: field?.selectionEnd ?? end,
    };
  }

  /** To the text, also from how it would look: a field that is not seen takes no focus. */
  focus(): void {
    if (this.preview) {
      this.preview = false;
      flushSync();
    }
    this.#field?.focus();
  }

  /** To the end of what is written. */
  focusEnd(): void {
    this.focus();
    this.toEnd();
  }

  /** The caret to the end of what is written, wherever the focus is. */
  toEnd(): void {
    this.#field?.setSelectionRange(this.text.length, this.text.length);
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
    this.text = this.#field.value;
    this.noteCaret();
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
    this.apply((writing) => inserted(writing, text));
  }

  /** Go on with a whole message: with its quotations and files, where nothing is written yet. */
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
    this.apply((writing) => insertedBlock(writing, text));
  }

  /** Quote something before what is written. */
  quote(markdown: string): void {
    const { quotes, text } = parted(markdown);
    if (text.trim()) {
      this.insertBlock(markdown);
      return;
    }
    this.quotes = [...this.quotes, ...quotes];
    this.focusEnd();
    this.changed();
  }

  unquote(quote: QuoteOf): void {
    this.quotes = this.quotes.filter((one) => one !== quote);
    this.focus();
    this.changed();
  }

  addFiles(files: Iterable<File>, most: number): void {
    for (const file of files) {
      const upload = this.uploads.add(file, most);
      if (upload.size > most) continue;
      const markdown = this.#place(upload.name);
      this.#placeholders.set(upload.id, markdown);
      awaited.add(markdown);
      this.files = [...this.files, { markdown, name: upload.name, url: "" }];
    }
    this.changed();
  }

  /**
   * Keep a place for a file that is not made yet, of at most so many bytes: also where the field goes
   * before it is. Null takes the place away.
   */
  addLater(name: string, coming: Promise<File | null>, most: number): void {
    const markdown = this.#place(name);
    awaited.add(markdown);
    this.files = [...this.files, { markdown, name, url: "" }];
    this.changed();
    void coming.then((file) => {
      if (file && file.size <= most) {
        this.#placeholders.set(this.uploads.add(file, most).id, markdown);
        return;
      }
      this.#settle(markdown, "");
    });
  }

  /** The way of a file that has not arrived. */
  uploadOf(file: FileOf): Upload | undefined {
    return this.uploads.list.find((one) => this.#placeholders.get(one.id) === file.markdown);
  }

  /** Leave a file out; one on its way goes no further. */
  removeFile(file: FileOf): void {
    const upload = this.uploadOf(file);
    if (upload) this.uploads.cancel(upload.id);
    this.files = this.files.filter((one) => one.markdown !== file.markdown);
    this.focus();
    this.changed();
  }

  /** What stands for a file until it has arrived; another one each time. */
  #place(called: string): string {
    const name = called.replace(/[[\]\n]/g, "");
    for (let number = 1; ; number += 1) {
      const numbered = number === 1 ? name : `${name} (${number})`;
      const place = `[${words.compose.uploading({ name: numbered })}]()`;
      if (!awaited.has(place)) return place;
    }
  }

  #arrived(upload: Upload, link: string): void {
    const place = this.#placeholders.get(upload.id);
    this.#placeholders.delete(upload.id);
    if (place) this.#settle(place, link);
  }

  /** What a place was kept for has arrived; without a link, it will not. */
  #settle(place: string, link: string): void {
    awaited.delete(place);
    const { files } = parted(link);
    this.files = this.files.flatMap((one) => (one.markdown === place ? files : [one]));
    // What has no field may get one again; until then it is written on by nobody.
    if (this.#field) this.changed();
    else this.left(place, link);
  }
}

/** Type what is other in the field, as if by hand. */
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
  const news = text.slice(from, text.length - same);
  if (field.put) {
    field.put(from, to, news);
    return;
  }
  field.setSelectionRange(from, to);
  try {
    if (!news) document.execCommand("delete");
    else if (!insertedLines(news)) document.execCommand("insertText", false, news);
  } catch {
    // It is set, then, as it is below.
  }
  if (field.value !== text) (field as HTMLTextAreaElement).value = text;
}

/**
 * Type many lines in one piece, where the browser can. As text Chromium types each by itself, and lays
 * out the page after each: that takes seconds for a few hundred.
 */
function insertedLines(text: string): boolean {
  if (!/\n[^]*\n/.test(text)) return false;
  const html = text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return document.execCommand("insertHTML", false, html);
}
