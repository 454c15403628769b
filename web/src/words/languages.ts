/** The languages that there are. */

import { first, later } from "./compiled/en";
import type { Language } from "./parts";

/** Each by its tag. English is there from the start; Portuguese is as in Brazil. */
export const LANGUAGES: Record<string, () => Promise<Language>> = {
  de: () => import("./compiled/de"),
  en: () => Promise.resolve({ first, later }),
  es: () => import("./compiled/es"),
  fr: () => import("./compiled/fr"),
  ja: () => import("./compiled/ja"),
  pt: () => import("./compiled/pt"),
};

/** What a language is called that may not be among them: by itself, or by its tag. */
export function languageName(tag: string): string {
  try {
    return new Intl.DisplayNames([tag, "en"], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** What they call themselves. */
export const LANGUAGE_NAMES: Record<string, string> = {
  de: "Deutsch",
  en: "English",
  es: "Español",
  fr: "Français",
  ja: "日本語",
  pt: "Português (Brasil)",
};
