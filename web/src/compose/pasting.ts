/** What comes from the clipboard or is dropped. */

import { markdownOf } from "../data/richtext";

/** The files; pictures that have no name of their own get one. */
export function filesIn(data: DataTransfer): File[] {
  return [...data.files].map((file) => {
    if (!/^image\.\w+$/.test(file.name)) return file;
    const stamp = new Date().toISOString().slice(0, 19).replace("T", "-").replace(/:/g, "");
    return new File([file], file.name.replace(/^image/, `image-${stamp}`), { type: file.type });
  });
}

/** Formatted text as Markdown; null where the plain text is as good. */
export function markdownIn(data: DataTransfer): string | null {
  const html = data.getData("text/html");
  const text = data.getData("text/plain");
  if (!html || !text.trim()) return null;
  // Editors of code put their colours into what they copy: it is meant as plain text.
  if (/vscode-editor-data|monospace|Consolas|Menlo/i.test(html.slice(0, 2000))) {
    return null;
  }
  return markdownOf(new DOMParser().parseFromString(html, "text/html").body);
}
