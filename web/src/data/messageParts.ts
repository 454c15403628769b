/** Splits a message into the quotes, text, and files that the compose box shows separately. */

import { fenceFor } from "./textEdits";

export interface QuotePart {
  markdown: string;
  who: string;
  text: string;
}

export interface FilePart {
  /** Its link, or a placeholder during the upload. */
  markdown: string;
  name: string;
  /** Empty during the upload. */
  url: string;
}

interface MessageParts {
  quotes: readonly QuotePart[];
  text: string;
  files: readonly FilePart[];
}

const QUOTE =
  /^@_\*\*([^|*\n]+)\|\d+\*\* \[[^\]\n]*\]\([^\s()]+\):\n(`{3,})quote\n([\s\S]*?)\n\2(?:\n|$)/;
const FILE = /(?:^|\n)(\[([^[\]\n]+)\]\((\/user_uploads\/[^\s()]+|)\)) ?$/;

export function joinParts({ quotes, text, files }: MessageParts): string {
  return [
    ...quotes.map((quote) => quote.markdown),
    ...(text ? [text] : []),
    ...linksOf(files),
  ].join("\n");
}

function linksOf(files: readonly FilePart[]): string[] {
  return files.map((file) => file.markdown);
}

/** Split a message into its parts. If joining them wouldn't restore it, everything stays text. */
export function splitParts(content: string): MessageParts {
  const quotes: QuotePart[] = [];
  const files: FilePart[] = [];
  let text = content;
  for (let match = QUOTE.exec(text); match; match = QUOTE.exec(text)) {
    const [whole, author = "", , link = ""] = match;
    quotes.push({ markdown: whole.replace(/\n$/, ""), who: author, text: link.trim() });
    text = text.slice(whole.length);
  }
  for (let match = FILE.exec(text); match; match = FILE.exec(text)) {
    const [, markdown = "", name = "", url = ""] = match;
    files.unshift({ markdown, name, url });
    text = text.slice(0, match.index);
  }
  const parts = { quotes, text, files };
  // Opening and saving an edit must not change the message.
  return joinParts(parts) === content.replace(/ $/, "") ||
    joinParts(parts) === content.replace(/\n$/, "")
    ? parts
    : { quotes: [], text: content, files: [] };
}

/** Whether browsers can display the file as an image. */
export function isPicture(name: string): boolean {
  return /\.(png|jpe?g|gif|webp|avif|svg|bmp)$/i.test(name);
}

interface Quoted {
  senderId: number;
  senderName: string;
  /** In Markdown. */
  text: string;
  /** The message's URL. */
  link: string;
}

/** A quotation with its author and a link. `said` formats "X said:". */
export function quotation(
  quoted: Quoted,
  intro: (mention: string, link: string) => string,
): string {
  const fence = fenceFor(quoted.text);
  const mention = `@_**${quoted.senderName}|${quoted.senderId}**`;
  return `${intro(mention, quoted.link)}\n${fence}quote\n${quoted.text.trim()}\n${fence}\n`;
}
