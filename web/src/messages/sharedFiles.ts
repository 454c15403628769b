/** Files that messages link to, for the list of a conversation's files. */

import type { Message } from "../data/data";
import { extensionOf, fileKind, pathIdOf, type FileKind } from "../data/files";
import type { FileMetadata } from "../live/fileMetadata";
import type { LightboxMedia } from "./overlays.svelte";

export interface SharedFile {
  url: string;
  name: string;
  kind: FileKind;
  /** URL of a thumbnail; "" if it has none or is hidden in a spoiler. */
  thumbnail: string;
  message: Message;
}

const LINKED = [
  'a[href^="/user_uploads/"]',
  'audio[src^="/user_uploads/"]',
  'img[data-original-src^="/user_uploads/"]',
].join(", ");

/** Larger texts are only downloaded, in bytes. */
const MAX_TEXT = 300_000;

/** The files that a message shares, each once. Files in quotes belong to the quoted message. */
export function sharedFiles(message: Message): SharedFile[] {
  const content = String(message.content);
  if (!content.includes("/user_uploads/")) return [];
  // An inert document: nothing in it loads or runs.
  const { body } = new DOMParser().parseFromString(content, "text/html");
  const files = new Map<string, SharedFile>();
  for (const element of body.querySelectorAll<HTMLElement>(LINKED)) {
    if (element.closest("blockquote")) continue;
    const url =
      element.dataset["originalSrc"] ??
      element.getAttribute("href") ??
      element.getAttribute("src") ??
      "";
    const before = files.get(url);
    const image = element.matches("img") ? element : element.querySelector("img");
    const isHidden = element.closest(".spoiler-content") !== null;
    const name = before?.name || nameOf(element) || pathIdOf(url).split("/").at(-1) || "";
    files.set(url, {
      url,
      name,
      kind: fileKind(pathIdOf(url)),
      thumbnail: before?.thumbnail || (isHidden ? "" : (image?.getAttribute("src") ?? "")),
      message,
    });
  }
  return [...files.values()];
}

function nameOf(element: HTMLElement): string {
  const name = element.textContent?.trim() || element.title || element.getAttribute("alt") || "";
  return /user_uploads\//.test(name) ? "" : name;
}

/** How the browser shows the file in place; undefined if it can only be downloaded. */
export function previewOf(
  url: string,
  name: string,
  messageId: number,
  facts: FileMetadata | null,
): LightboxMedia | undefined {
  const media = { source: url, preview: "", name, messageId };
  if (!facts) return undefined;
  if (facts.opens && facts.media_type.startsWith("image/")) return { ...media, kind: "image" };
  if (facts.opens && facts.media_type.startsWith("video/")) return { ...media, kind: "video" };
  // Phones' browsers can't show PDFs within a page.
  if (facts.media_type === "application/pdf")
    return navigator.pdfViewerEnabled ? { ...media, kind: "document" } : undefined;
  const isText =
    facts.media_type.startsWith("text/") ||
    /^(txt|md|csv|tsv|log)$/.test(extensionOf(facts.name)) ||
    fileKind(facts.name) === "code";
  return isText && facts.size <= MAX_TEXT ? { ...media, kind: "text" } : undefined;
}
