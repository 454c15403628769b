import { expect, test } from "vitest";
import * as manage from "../manage/tables";
import { LANGUAGES } from "../words/languages";
import { whole } from "../words/whole";
import { declaredGroups, ORGANIZATION, PERSONAL, type Declared } from "./declared";
import type { FieldGroup, FieldWords } from "./form/fields";
import { CHANNEL_OVERRIDES, NOTIFICATIONS, PREFERENCES, PRIVACY } from "./tables";

/** Fields without texts. */
function wordless(groups: readonly FieldGroup[], texts: FieldWords): string[] {
  return groups.flatMap((group) => [
    ...(group.name && !texts.groups[group.name] ? [group.name] : []),
    ...group.fields.flatMap((field) => [
      ...(texts.labels[field.name] ? [] : [field.name]),
      ...(field.values ?? [])
        .filter((value) => !texts.options[field.name]?.[String(value)])
        .map((value) => `${field.name}: ${value}`),
    ]),
  ]);
}

test.each(Object.keys(LANGUAGES))("every field has words in %s", async (language) => {
  const words = await whole(language);
  expect(wordless([...PREFERENCES, ...NOTIFICATIONS, ...PRIVACY], words.settings)).toEqual([]);
  expect(
    wordless(
      [...manage.ORGANIZATION_PROFILE, ...manage.MESSAGES, ...manage.PERMISSIONS],
      words.manage.fields,
    ),
  ).toEqual([]);
  expect(wordless(manage.CHANNEL_PERMISSIONS, words.manage.channelFields)).toEqual([]);
  expect(wordless(manage.GROUP_PERMISSIONS, words.manage.groupFields)).toEqual([]);
  for (const [property] of CHANNEL_OVERRIDES) {
    expect(words.manage.channelFields.labels[property]).toBeTruthy();
  }
});

const fieldsOf = (groups: readonly FieldGroup[]) =>
  groups.flatMap((group) => group.fields.map((field) => field.name)).sort();

test("every declared setting is on a page", () => {
  expect(fieldsOf([...PREFERENCES, ...NOTIFICATIONS, ...PRIVACY])).toEqual(
    PERSONAL.map((setting) => setting.name).sort(),
  );
  expect(
    fieldsOf([...manage.ORGANIZATION_PROFILE, ...manage.MESSAGES, ...manage.PERMISSIONS]),
  ).toEqual(ORGANIZATION.map((setting) => setting.name).sort());
});

test("a setting that the server declares is the last field of its section", () => {
  const loud: Declared = { name: "loud", section: "display", kind: "switch", forOwners: true };
  const [before] = declaredGroups(ORGANIZATION, ["display"]);
  const [group] = declaredGroups([...ORGANIZATION, loud], ["display"]);
  expect(group?.fields).toEqual([...(before?.fields ?? []), loud]);
});
