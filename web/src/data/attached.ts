/**
 * What goes with a text and is shown beside it while one writes: quotations before it, files after
 * it. The message is one Markdown text, as ever. Pure.
 */

export interface QuoteOf {
  /** All of it, as it is sent. */
  markdown: string;
  who: string;
  text: string;
}

export interface FileOf {
  /** Its link, or what stands for it while it is on its way. */
  markdown: string;
  name: string;
  /** Empty while it is on its way. */
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

/** The message that the parts make. */
export function joined({ quotes, text, files }: Parts): string {
  return [...quotes.map((one) => one.markdown), ...(text ? [text] : []), ...linksOf(files)].join(
    "\n",
  );
}

function linksOf(files: readonly FileOf[]): string[] {
  return files.map((one) => one.markdown);
}

/** The parts of a message. Where they would make another one, all of it is text. */
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
  // An edit that changes nothing must change nothing.
  return joined(parts) === content.replace(/ $/, "") || joined(parts) === content.replace(/\n$/, "")
    ? parts
    : { quotes: [], text: content, files: [] };
}

/** Whether a browser can show it as a picture. */
export function isPicture(name: string): boolean {
  return /\.(png|jpe?g|gif|webp|avif|svg|bmp)$/i.test(name);
}
