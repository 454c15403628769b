/** Custom profile fields. */

import type { Data } from "../../data/data";
import type { ProfileField } from "../../wire/objects";

export const FieldType = {
  short: 1,
  long: 2,
  options: 3,
  date: 4,
  link: 5,
  people: 6,
  account: 7,
  pronouns: 8,
} as const;

export interface Choice {
  key: string;
  text: string;
}

function fieldData(field: Pick<ProfileField, "field_data">): Record<string, unknown> {
  try {
    return (JSON.parse(field.field_data) ?? {}) as Record<string, unknown>;
  } catch {
    // Fields without choices have no data.
    return {};
  }
}

/** The choices of a list field, in order. */
export function fieldChoices(field: Pick<ProfileField, "field_data">): Choice[] {
  return Object.entries(fieldData(field) as Record<string, { text: string; order: string }>)
    .sort(([, a], [, b]) => Number(a.order) - Number(b.order))
    .map(([key, { text }]) => ({ key, text }));
}

/** A list field's choices for the server. New choices get the next free key. */
export function fieldChoicesData(
  choices: readonly Choice[],
): Record<string, { text: string; order: string }> {
  let next =
    Math.max(
      -1,
      ...choices
        .filter((choice) => choice.key)
        .map((choice) => Number(choice.key))
        .filter(Number.isInteger),
    ) + 1;
  return Object.fromEntries(
    choices.map(({ key, text }, at) => [
      key === "" ? String(next++) : key,
      { text, order: String(at + 1) },
    ]),
  );
}

/** The people in a value. */
export function userIdsIn(value: string): number[] {
  try {
    const ids: unknown = JSON.parse(value);
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "number") : [];
  } catch {
    // Not a list of people.
    return [];
  }
}

/** The service of an external account: a known name, or a URL pattern. */
export function externalAccount(field: Pick<ProfileField, "field_data">): {
  subtype: string;
  url_pattern: string;
} {
  const { subtype = "custom", url_pattern = "" } = fieldData(field);
  return { subtype: String(subtype), url_pattern: String(url_pattern) };
}

export function accountName(field: ProfileField, realm: Data["realm"]): string {
  const services = realm["realm_default_external_accounts"] as
    Record<string, { hint: string }> | undefined;
  return services?.[externalAccount(field).subtype]?.hint ?? "";
}
