import { first, later } from "./compiled/en";
import type { Language } from "./parts";

/** Supported languages by tag. English is always loaded; Portuguese is Brazilian. */
export const LANGUAGES: Record<string, () => Promise<Language>> = {
  de: () => import("./compiled/de"),
  en: () => Promise.resolve({ first, later }),
  es: () => import("./compiled/es"),
  fr: () => import("./compiled/fr"),
  ja: () => import("./compiled/ja"),
  pt: () => import("./compiled/pt"),
};

/** A language's own name, or its tag if it isn't supported. */
export function languageName(tag: string): string {
  try {
    return new Intl.DisplayNames([tag, "en"], { type: "language" }).of(tag) ?? tag;
  } catch {
    // Not a language tag.
    return tag;
  }
}

/** Languages by their own names. */
export const LANGUAGE_NAMES: Record<string, string> = {
  de: "Deutsch",
  en: "English",
  es: "Español",
  fr: "Français",
  ja: "日本語",
  pt: "Português (Brasil)",
};
