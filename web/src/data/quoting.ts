import { fenceFor } from "./marking";

export interface Quoted {
  senderId: number;
  senderName: string;
  /** In Markdown. */
  text: string;
  /** The message's URL. */
  link: string;
}

/** A quotation with its author and a link. `said` formats "X said:". */
export function quotation(quoted: Quoted, said: (mention: string, link: string) => string): string {
  const fence = fenceFor(quoted.text);
  const mention = `@_**${quoted.senderName}|${quoted.senderId}**`;
  return `${said(mention, quoted.link)}\n${fence}quote\n${quoted.text.trim()}\n${fence}\n`;
}

/** Insert a quotation on its own lines at the caret. */
export function withQuotation(before: string, quote: string, after: string): string {
  const open = before.trimEnd() ? `${before.trimEnd()}\n\n` : "";
  const rest = after.trimStart();
  return `${open}${quote}${rest ? `\n${rest}` : ""}`;
}
