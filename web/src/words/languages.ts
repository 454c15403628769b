/** The languages that there are. */

import { first, later, type Language } from "./en";

/** Each by its tag. English is there from the start; Portuguese is as in Brazil. */
export const LANGUAGES: Record<string, () => Promise<Language>> = {
  de: () => import("./de"),
  en: () => Promise.resolve({ first, later }),
  es: () => import("./es"),
  fr: () => import("./fr"),
  ja: () => import("./ja"),
  pt: () => import("./pt"),
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
