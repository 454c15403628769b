/** The characters of a code such as `1f1fa-1f1f8`. */
export function characters(code: string): string {
  try {
    const points = code.split("-").map((part) => Number.parseInt(part, 16));
    const plain = String.fromCodePoint(...points);
    // Ask for emoji presentation if the character is also a text symbol.
    return points.length === 1 && (points[0] ?? 0) < 0x1f000 ? `${plain}\ufe0f` : plain;
  } catch {
    // Not a code.
    return "";
  }
}
