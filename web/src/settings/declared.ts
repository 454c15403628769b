/** Settings declared by the server, as form fields. `web/declared.py` writes the list. */

import declared from "./declared.json";
import type { FieldGroup, FieldOf } from "./form/fields";

export type Declared = FieldOf & { section: string };

export const ORGANIZATION = declared.organization as Declared[];
export const PERSONAL = declared.personal as Declared[];

/** The declared fields of some sections. `details` has what only this client needs. */
export function groupsOf(
  settings: readonly Declared[],
  sections: readonly string[],
  details: Readonly<Record<string, Partial<FieldOf>>> = {},
): FieldGroup[] {
  return sections.map((name) => ({
    name,
    fields: settings
      .filter((one) => one.section === name)
      .map((one) => ({ ...one, ...details[one.name] })),
  }));
}
