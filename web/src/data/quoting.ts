/** A message in another: as a quotation, with who wrote it and a link back. Pure. */

import { fenceFor } from "./marking";

export interface Quoted {
  senderId: number;
  senderName: string;
  /** What is quoted, in Markdown. */
  text: string;
  /** The message's address. */
  link: string;
}

/** `words` says "X said:" of a mention and a link. */
export function quotation(quoted: Quoted, said: (mention: string, link: string) => string): string {
  const fence = fenceFor(quoted.text);
  const mention = `@_**${quoted.senderName}|${quoted.senderId}**`;
  return `${said(mention, quoted.link)}\n${fence}quote\n${quoted.text.trim()}\n${fence}\n`;
}

/** A quotation on lines of its own at the place of the caret. */
export function withQuotation(before: string, quote: string, after: string): string {
  const open = before.trimEnd() ? `${before.trimEnd()}\n\n` : "";
  const rest = after.trimStart();
  return `${open}${quote}${rest ? `\n${rest}` : ""}`;
}
