/** Settings as tables of fields, shown and saved in one way. */

import type { GroupSetting } from "../../wire/objects";
import type { Parameters } from "../../wire/http";
import { normalized } from "../../data/matching";

export type Value = string | number | boolean | null;

export interface SettingField {
  /** The API's name. */
  name: string;
  kind:
    | "switch"
    | "choice"
    | "text"
    | "area"
    | "number"
    /** MiB or a count; empty for no limit. */
    | "size"
    /** Seconds or days, or no limit. */
    | "limit"
    /** A permission. */
    | "holders"
    /** A channel ID, or -1. */
    | "channel"
    | "language";
  /** The choices. */
  values?: readonly Value[];
  /** Maximum length or value. */
  max?: number;
  min?: number;
  /** The API's value for an empty text. */
  empty?: Value;
  /** Only owners may change it. */
  forOwners?: boolean;
  /** Only private channels can be chosen. */
  privateOnly?: boolean;
  /** Whether a change needs confirmation, with a text from `cautions`. */
  cautious?: (value: unknown, before: unknown) => boolean;
}

export interface FieldGroup {
  name: string;
  fields: readonly SettingField[];
}

/** The texts of fields, by name. */
export interface FieldWords {
  groups: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
  hints: Readonly<Record<string, string>>;
  options: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Consequences that can't be undone. */
  cautions?: Readonly<Record<string, string>>;
}

export function labelOf(texts: FieldWords, name: string): string {
  return texts.labels[name] ?? name;
}

export function optionLabel(texts: FieldWords, name: string, value: Value): string {
  return texts.options[name]?.[String(value)] ?? String(value);
}

/** The parameters for a change; `before` is the known value. */
export function changeParameters(field: SettingField, value: unknown, before: unknown): Parameters {
  if (field.kind === "holders") {
    return { [field.name]: { new: value as GroupSetting, old: before as GroupSetting } };
  }
  if (["limit", "size"].includes(field.kind) && value === null)
    return { [field.name]: "unlimited" };
  if (value === "" && field.empty !== undefined) return { [field.name]: field.empty };
  return { [field.name]: value };
}

/** The differences between a form and the known values. */
export function changedValues(
  after: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>>,
): Parameters {
  return Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  );
}

export interface FoundField {
  page: string;
  field: string;
  label: string;
}

/** Fields whose label, hint, or choices contain all words of a query. */
export function findFields(
  pages: Readonly<Record<string, readonly FieldGroup[]>>,
  texts: FieldWords,
  query: string,
): FoundField[] {
  const searchWords = normalized(query).split(/\s+/).filter(Boolean);
  if (!searchWords.length) return [];
  const results: FoundField[] = [];
  for (const [page, groups] of Object.entries(pages)) {
    for (const group of groups) {
      for (const { name } of group.fields) {
        const label = labelOf(texts, name);
        const choices = Object.values(texts.options[name] ?? {});
        const all = normalized(
          [label, texts.hints[name] ?? "", texts.groups[group.name] ?? "", ...choices].join(" "),
        );
        if (searchWords.every((word) => all.includes(word)))
          results.push({ page, field: name, label });
      }
    }
  }
  return results;
}

/** If nothing can be changed: the most common reason. */
export function commonReason(reasons: readonly (string | undefined)[]): string | undefined {
  const counts = new Map<string, number>();
  for (const reason of reasons) {
    if (reason === undefined) return undefined;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}
