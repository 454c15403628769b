/**
 * Compiles the texts in `words/` into `src/words/compiled/`: `node words.ts`. Fails if a text is
 * missing, unused, or has other arguments than the English one.
 *
 * Each file is nested JSON whose values are ICU messages, a format that translation tools read. In
 * the client, a text without arguments is a string, and one with arguments is a function.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { parse, TYPE, type MessageFormatElement } from "@formatjs/icu-messageformat-parser";

type Texts = { [name: string]: string | string[] | Texts };

const SOURCES = `${import.meta.dirname}/words`;
const COMPILED = `${import.meta.dirname}/src/words/compiled`;
const CLIENT = `${import.meta.dirname}/src`;
/** The settings that the server declares, and the paths of their labels. */
const DECLARED = `${CLIENT}/settings/declared.json`;
const LABELS: Record<string, string> = {
  organization: "manage.fields.labels",
  personal: "settings.labels",
};
/** Texts whose names are values that only the server knows. */
const NAMED_BY_SERVER = [
  "manage.audit.kinds.",
  "manage.nodes.states.",
  "settings.deliveryOutcomes.",
];
/** Parts that are loaded with the views that need them. */
const LATER = [
  "settings",
  "manage",
  "visit",
  "later",
  "catchUp",
  "files",
  "inbox",
  "keys",
  "status",
  "voice",
];

const parsed = (text: string) => parse(text, { ignoreTag: true });
const argument = (name: string) => name.replace(/\W/g, "_");

/** The arguments of a message, each with its TypeScript type. */
function argumentsOf(elements: MessageFormatElement[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const element of elements) {
    if (element.type === TYPE.argument) {
      if (!found.has(element.value)) found.set(element.value, "string | number");
    } else if (element.type === TYPE.plural) {
      found.set(element.value, "number");
      for (const option of Object.values(element.options))
        for (const [name, type] of argumentsOf(option.value))
          if (found.get(name) !== "number") found.set(name, type);
    } else if (element.type !== TYPE.literal && element.type !== TYPE.pound) {
      throw new Error("only {name} and {count, plural, …} are supported");
    }
  }
  return found;
}

const NUMBERS = [...Array(1100).keys()];

/** A condition that is true for the numbers of a plural category; short for the usual rules. */
function category(language: string, name: string, option: string): string {
  if (option.startsWith("=")) return `${name} === ${Number(option.slice(1))}`;
  const rules = new Intl.PluralRules(language);
  const has = (test: (number: number) => boolean) =>
    NUMBERS.every((number) => (rules.select(number) === option) === test(number));
  if (has((number) => number === 1)) return `${name} === 1`;
  if (has((number) => number < 2)) return `${name} < 2`;
  return `plural(${name}) === ${JSON.stringify(option)}`;
}

/** The plural categories that a message has texts for. */
function formsOf(elements: MessageFormatElement[]): string[] {
  return elements
    .flatMap((element) =>
      element.type === TYPE.plural
        ? Object.entries(element.options).flatMap(([form, { value }]) => [form, ...formsOf(value)])
        : [],
    )
    .filter((form) => !form.startsWith("="));
}

/** `counted` is the argument that `#` stands for. */
function template(language: string, elements: MessageFormatElement[], counted = ""): string {
  const body = elements.map((element) => {
    if (element.type === TYPE.literal) return element.value.replace(/[\\`]|\$(?=\{)/g, "\\$&");
    if (element.type === TYPE.plural) return `\${${pluralForm(language, element)}}`;
    if (element.type === TYPE.pound) return `\${${counted}}`;
    return `\${${argument((element as { value: string }).value)}}`;
  });
  return `\`${body.join("")}\``;
}

function pluralForm(
  language: string,
  element: MessageFormatElement & { type: TYPE.plural },
): string {
  const name = argument(element.value);
  const cases = Object.entries(element.options).filter(([option]) => option !== "other");
  const chosen = cases.map(([option, { value }]) => {
    return `${category(language, name, option)} ? ${template(language, value, name)} : `;
  });
  return chosen.join("") + template(language, element.options["other"]!.value, name);
}

function compiledText(language: string, text: string, english: string): string {
  const elements = parsed(text);
  const names = [...argumentsOf(elements)];
  if (!names.length) {
    const string = JSON.stringify(elements.map((one) => (one as { value: string }).value).join(""));
    return argumentsOf(parsed(english)).size ? `(): string => ${string}` : string;
  }
  const [only] = elements;
  const body =
    elements.length === 1 && only!.type === TYPE.plural
      ? pluralForm(language, only!)
      : template(language, elements);
  const taken = names.map(([name]) => argument(name)).join(", ");
  const types = names.map(([name, type]) => `${argument(name)}: ${type}`).join("; ");
  return `({ ${taken} }: { ${types} }): string => ${body}`;
}

function compiled(language: string, value: Texts[string], english: Texts[string]): string {
  if (typeof value === "string") return compiledText(language, value, english as string);
  const inner = Object.entries(value).map(([name, one]: [string, Texts[string]]) => [
    JSON.stringify(name),
    compiled(language, one, (english as Texts)[name]!),
  ]);
  if (Array.isArray(value))
    return `[${inner.map(([, one]) => one)}] as [${inner.map(() => "string")}]`;
  return `{ ${inner.map((one) => one.join(": ")).join(",\n")} }`;
}

/** Every text by its path, such as `shell.search.title`. */
export function leaves(texts: Texts | string[], path: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(texts)) {
    const place = `${path}.${name}`;
    if (typeof value === "string") found.set(place, value);
    else for (const leaf of leaves(value, place)) found.set(...leaf);
  }
  return found;
}

/** What is wrong with a language's texts, compared with the English ones; a line for each. */
export function mistakes(
  language: string,
  english: Map<string, string>,
  texts: Map<string, string>,
): string[] {
  const found: string[] = [];
  for (const [path, text] of texts) {
    const before = english.get(path);
    if (before === undefined) {
      found.push(`${language}: ${path} isn't in English`);
      continue;
    }
    try {
      // A language without plural forms may leave a count out.
      const ours = argumentsOf(parsed(before));
      const theirs = argumentsOf(parsed(text));
      for (const name of theirs.keys())
        if (!ours.has(name)) found.push(`${language}: ${path} has {${name}}, English doesn't`);
      const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories as string[];
      for (const form of formsOf(parsed(text)))
        if (!forms.includes(form))
          found.push(`${language}: ${path} has no use for the form ${form}`);
      for (const [name, type] of ours)
        if (!theirs.has(name) && type !== "number")
          found.push(`${language}: ${path} doesn't have {${name}}`);
    } catch (error) {
      found.push(`${language}: ${path}: ${error instanceof Error ? error.message : error}`);
    }
  }
  for (const path of english.keys())
    if (!texts.has(path)) found.push(`${language}: ${path} is missing`);
  return found;
}

/** The texts that no module of the client names. */
function unused(paths: Iterable<string>): string[] {
  const sources = readdirSync(CLIENT, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(ts|svelte|json)$/.test(file))
    .filter((file) => !file.startsWith("words/") && !file.endsWith(".test.ts"))
    .map((file) => readFileSync(`${CLIENT}/${file}`, "utf8"));
  const code = sources.join("\n").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/ .*|<!--[\s\S]*?-->/gm, "");
  const named = new Set(code.match(/[\p{L}_][\p{L}\p{N}_-]*/gu));
  return [...paths].filter((path) => {
    if (NAMED_BY_SERVER.some((table) => path.startsWith(table))) return false;
    const name = path.slice(path.lastIndexOf(".") + 1);
    // A number or a name with other characters is a value of a table.
    return /^[\p{L}_][\p{L}\p{N}_-]*$/u.test(name) && !named.has(name);
  });
}

/** The labels of declared settings that don't exist. */
function unlabelled(texts: Map<string, string>): string[] {
  const declared = JSON.parse(readFileSync(DECLARED, "utf8")) as Record<string, { name: string }[]>;
  return Object.entries(declared)
    .flatMap(([of, settings]) => settings.map(({ name }) => `${LABELS[of]}.${name}`))
    .filter((path) => !texts.has(path));
}

function readTexts(language: string): Record<string, Texts> {
  const files = readdirSync(`${SOURCES}/${language}`);
  return Object.fromEntries(
    files.map((file) => [
      file.replace(".json", ""),
      JSON.parse(readFileSync(`${SOURCES}/${language}/${file}`, "utf8")) as Texts,
    ]),
  );
}

const allLeaves = (parts: Record<string, Texts>) =>
  new Map(Object.entries(parts).flatMap(([part, texts]) => [...leaves(texts, part)]));

/** Write the modules of all languages. Throws an error that lists what is wrong. */
export function compileWords(): void {
  const languages = readdirSync(SOURCES).sort();
  const english = readTexts("en");
  const wrong = [
    ...unused(allLeaves(english).keys()).map((path) => `en: ${path} isn't used`),
    ...unlabelled(allLeaves(english)).map((path) => `en: ${path} is missing`),
  ];
  rmSync(COMPILED, { recursive: true, force: true });
  for (const language of languages) {
    const texts = readTexts(language);
    wrong.push(...mistakes(language, allLeaves(english), allLeaves(texts)));
    if (wrong.length) continue;
    const directory = `${COMPILED}/${language}`;
    mkdirSync(directory, { recursive: true });
    for (const [part, content] of Object.entries(texts)) {
      const body = compiled(language, content, english[part]!);
      const lines = [
        body.includes("plural(")
          ? `import { pluralsOf } from "../../plurals";\nconst plural = pluralsOf(${JSON.stringify(language)});`
          : "",
        language === "en" ? "" : 'import type { AllWords } from "../../parts";',
        `export const ${part}${language === "en" ? "" : `: AllWords["${part}"]`} = ${body};`,
      ];
      writeFileSync(`${directory}/${part}.ts`, `${lines.filter(Boolean).join("\n")}\n`);
    }
    const first = Object.keys(texts).filter((part) => !LATER.includes(part));
    const index = [
      ...first.map((part) => `import { ${part} } from "./${part}";`),
      `export const first = { ${first.join(", ")} };`,
      "export const later = {",
      ...LATER.map((part) => `${part}: async () => (await import("./${part}")).${part},`),
      "};",
    ];
    writeFileSync(`${directory}/index.ts`, `${index.join("\n")}\n`);
  }
  if (wrong.length) throw new Error(`The texts in web/words don't match:\n${wrong.join("\n")}`);
}

if (process.argv[1] === import.meta.filename) compileWords();
