/** Settings declared by the server, as form fields. `web/declared.py` writes the list. */

import declared from "./declared.json";
import type { FieldGroup, SettingField } from "./form/fields";

export type Declared = SettingField & { section: string };

export const ORGANIZATION = declared.organization as Declared[];
export const PERSONAL = declared.personal as Declared[];

/** The declared fields of some sections. `details` has what only this client needs. */
export function declaredGroups(
  settings: readonly Declared[],
  sections: readonly string[],
  details: Readonly<Record<string, Partial<SettingField>>> = {},
): FieldGroup[] {
  return sections.map((name) => ({
    name,
    fields: settings
      .filter((setting) => setting.section === name)
      .map((setting) => ({ ...setting, ...details[setting.name] })),
  }));
}
