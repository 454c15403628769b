import { normalized, topItems } from "../data/matching";

export interface Option {
  /** Unique key. */
  key: string;
  label: string;
  /** Description. */
  detail?: string;
}

/** Match rank: 0 at the start, 1 at a word, 2 within; null: none. */
export function optionRank(text: string, query: string): number | null {
  const label = normalized(text);
  const needle = normalized(query.trim());
  const at = label.indexOf(needle);
  if (at < 0) return null;
  if (at === 0) return 0;
  return label.includes(` ${needle}`) ? 1 : 2;
}

/** The best matches, at most `many`. */
export function matchingOptions(
  options: readonly Option[],
  chosen: ReadonlySet<string>,
  query: string,
  limit = 8,
): Option[] {
  const ranked: [number, Option][] = [];
  for (const option of options) {
    if (chosen.has(option.key)) continue;
    const rank =
      optionRank(option.label, query) ??
      (optionRank(option.detail ?? "", query) !== null ? 3 : null);
    if (rank !== null) ranked.push([rank, option]);
  }
  const first = topItems(ranked, limit, (a, b) => a[0] - b[0]);
  return first.map(([, option]) => option);
}
