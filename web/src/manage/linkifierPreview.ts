/** Previews a linkifier: like the server, as far as a browser can. */

export interface PreviewLink {
  text: string;
  url: string;
}

/** The links in a text; null if the pattern is invalid. */
export function previewLinks(
  pattern: string,
  template: string,
  text: string,
): PreviewLink[] | null {
  let expression: RegExp;
  try {
    // Python and RE2 write named groups with a P.
    const source = pattern.replaceAll("(?P<", "(?<");
    expression = new RegExp(`(?<![\\p{L}\\p{N}])(?:${source})(?![\\p{L}\\p{N}])`, "gu");
  } catch {
    // Not a valid pattern: the form says so.
    return null;
  }
  return [...text.matchAll(expression)]
    .filter((match) => match[0])
    .map((match) => ({ text: match[0], url: filled(template, match.groups ?? {}) }));
}

/** Expand a URL template with simple variables. */
function filled(template: string, values: Readonly<Record<string, string | undefined>>): string {
  return template.replace(/\{(\+?)(\w+)\}/g, (_, plain: string, name: string) => {
    const value = values[name] ?? "";
    return plain ? encodeURI(value) : encodeURIComponent(value);
  });
}
