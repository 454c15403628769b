/** Settings as tables of fields: one way of showing and of saving all of them. */

import type { GroupSetting } from "../../wire/objects";
import type { Parameters } from "../../wire/http";
import { normalized } from "../../data/matching";

export type Value = string | number | boolean | null;

export interface FieldOf {
  /** As the interface calls it. */
  name: string;
  kind:
    | "switch"
    | "choice"
    | "text"
    | "area"
    | "number"
    /** MiB, or how many; empty without a limit. */
    | "size"
    /** Seconds or days, or without a limit. */
    | "limit"
    /** Who holds a permission. */
    | "holders"
    /** A channel's ID, or -1. */
    | "channel"
    | "language";
  /** What one chooses from. */
  values?: readonly Value[];
  /** The longest text, or the greatest number. */
  max?: number;
  min?: number;
  /** What an empty text stands for, as the interface has it. */
  empty?: Value;
  /** Only owners may change it. */
  forOwners?: boolean;
  /** Whether a change is to be asked about first; `cautions` say what will happen. */
  cautious?: (value: unknown, before: unknown) => boolean;
}

export interface FieldGroup {
  name: string;
  fields: readonly FieldOf[];
}

/** The texts of fields, by their names. */
export interface FieldWords {
  groups: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
  hints: Readonly<Record<string, string>>;
  options: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** What a change does that cannot be taken back. */
  cautions?: Readonly<Record<string, string>>;
}

export function labelOf(say: FieldWords, name: string): string {
  return say.labels[name] ?? name;
}

export function optionLabel(say: FieldWords, name: string, value: Value): string {
  return say.options[name]?.[String(value)] ?? String(value);
}

/** The parameters that change one field; `before` is what the client believes to hold now. */
export function changeOf(field: FieldOf, value: unknown, before: unknown): Parameters {
  if (field.kind === "holders") {
    return { [field.name]: { new: value as GroupSetting, old: before as GroupSetting } };
  }
  if (["limit", "size"].includes(field.kind) && value === null)
    return { [field.name]: "unlimited" };
  if (value === "" && field.empty !== undefined) return { [field.name]: field.empty };
  return { [field.name]: value };
}

/** What of a form differs from what is known: only that is sent. */
export function changed(
  after: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>>,
): Parameters {
  return Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  );
}

export interface Found {
  page: string;
  field: string;
  label: string;
}

/** The fields whose label, hint or choices hold every word of a query. */
export function findFields(
  pages: Readonly<Record<string, readonly FieldGroup[]>>,
  say: FieldWords,
  query: string,
): Found[] {
  const sought = normalized(query).split(/\s+/).filter(Boolean);
  if (!sought.length) return [];
  const found: Found[] = [];
  for (const [page, groups] of Object.entries(pages)) {
    for (const group of groups) {
      for (const { name } of group.fields) {
        const label = labelOf(say, name);
        const choices = Object.values(say.options[name] ?? {});
        const all = normalized(
          [label, say.hints[name] ?? "", say.groups[group.name] ?? "", ...choices].join(" "),
        );
        if (sought.every((word) => all.includes(word))) found.push({ page, field: name, label });
      }
    }
  }
  return found;
}

/** Where nothing can be changed: the reason that most of the fields have. */
export function commonReason(reasons: readonly (string | undefined)[]): string | undefined {
  const counts = new Map<string, number>();
  for (const reason of reasons) {
    if (reason === undefined) return undefined;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].sort((one, other) => other[1] - one[1])[0]?.[0];
}
