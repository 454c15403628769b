/** Splits a message into the quotes, text, and files that the compose box shows separately. */

export interface QuoteOf {
  markdown: string;
  who: string;
  text: string;
}

export interface FileOf {
  /** Its link, or a placeholder during the upload. */
  markdown: string;
  name: string;
  /** Empty during the upload. */
  url: string;
}

export interface Parts {
  quotes: readonly QuoteOf[];
  text: string;
  files: readonly FileOf[];
}

const QUOTE =
  /^@_\*\*([^|*\n]+)\|\d+\*\* \[[^\]\n]*\]\([^\s()]+\):\n(`{3,})quote\n([\s\S]*?)\n\2(?:\n|$)/;
const FILE = /(?:^|\n)(\[([^[\]\n]+)\]\((\/user_uploads\/[^\s()]+|)\)) ?$/;

export function joined({ quotes, text, files }: Parts): string {
  return [...quotes.map((one) => one.markdown), ...(text ? [text] : []), ...linksOf(files)].join(
    "\n",
  );
}

function linksOf(files: readonly FileOf[]): string[] {
  return files.map((one) => one.markdown);
}

/** Split a message into its parts. If joining them wouldn't restore it, everything stays text. */
export function parted(content: string): Parts {
  const quotes: QuoteOf[] = [];
  const files: FileOf[] = [];
  let text = content;
  for (let found = QUOTE.exec(text); found; found = QUOTE.exec(text)) {
    const [whole, who = "", , said = ""] = found;
    quotes.push({ markdown: whole.replace(/\n$/, ""), who, text: said.trim() });
    text = text.slice(whole.length);
  }
  for (let found = FILE.exec(text); found; found = FILE.exec(text)) {
    const [, markdown = "", name = "", url = ""] = found;
    files.unshift({ markdown, name, url });
    text = text.slice(0, found.index);
  }
  const parts = { quotes, text, files };
  // Opening and saving an edit must not change the message.
  return joined(parts) === content.replace(/ $/, "") || joined(parts) === content.replace(/\n$/, "")
    ? parts
    : { quotes: [], text: content, files: [] };
}

/** Whether browsers can display the file as an image. */
export function isPicture(name: string): boolean {
  return /\.(png|jpe?g|gif|webp|avif|svg|bmp)$/i.test(name);
}
