/** What comes from the clipboard or is dropped. */

/** The files; pictures that have no name of their own get one. */
export function filesIn(data: DataTransfer): File[] {
  return [...data.files].map((file) => {
    if (!/^image\.\w+$/.test(file.name)) return file;
    const stamp = new Date().toISOString().slice(0, 19).replace("T", "-").replace(/:/g, "");
    return new File([file], file.name.replace(/^image/, `image-${stamp}`), { type: file.type });
  });
}

/** Formatted text as Markdown, or else as plain text; null where that is meant anyway. */
export function markdownIn(data: DataTransfer): Promise<string> | null {
  const html = data.getData("text/html");
  const text = data.getData("text/plain");
  if (!html || !text.trim()) return null;
  // Editors of code put their colours into what they copy: it is meant as plain text.
  if (/vscode-editor-data|monospace|Consolas|Menlo/i.test(html.slice(0, 2000))) {
    return null;
  }
  const { body } = new DOMParser().parseFromString(html, "text/html");
  const plain = text.replace(/\r\n?/g, "\n");
  return import("../data/richtext").then(
    ({ markdownOf }) => markdownOf(body) ?? plain,
    () => plain,
  );
}
