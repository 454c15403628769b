/** Files from the clipboard or a drop; unnamed images get a name. */
export function filesIn(data: DataTransfer): File[] {
  return [...data.files].map((file) => {
    if (!/^image\.\w+$/.test(file.name)) return file;
    const stamp = new Date().toISOString().slice(0, 19).replace("T", "-").replace(/:/g, "");
    return new File([file], file.name.replace(/^image/, `image-${stamp}`), { type: file.type });
  });
}

/** Formatted text as Markdown; null to paste plain text. */
export function markdownIn(data: DataTransfer): Promise<string> | null {
  const html = data.getData("text/html");
  const text = data.getData("text/plain");
  if (!html || !text.trim()) return null;
  // Code editors copy with syntax colors, but plain text is meant.
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
