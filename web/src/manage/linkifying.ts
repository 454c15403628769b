/** What a linkifier would make of a text: the server's way, as far as a browser can follow it. */

export interface Made {
  text: string;
  url: string;
}

/** The links in a text; null where the pattern cannot be read here. */
export function linksIn(pattern: string, template: string, text: string): Made[] | null {
  let expression: RegExp;
  try {
    // Python and RE2 write the names of groups with a P.
    const source = pattern.replaceAll("(?P<", "(?<");
    expression = new RegExp(`(?<![\\p{L}\\p{N}])(?:${source})(?![\\p{L}\\p{N}])`, "gu");
  } catch {
    return null;
  }
  return [...text.matchAll(expression)]
    .filter((match) => match[0])
    .map((match) => ({ text: match[0], url: filled(template, match.groups ?? {}) }));
}

/** An address of a template with simple variables. */
function filled(template: string, values: Readonly<Record<string, string | undefined>>): string {
  return template.replace(/\{(\+?)(\w+)\}/g, (_, plain: string, name: string) => {
    const value = values[name] ?? "";
    return plain ? encodeURI(value) : encodeURIComponent(value);
  });
}
