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

/** What they call themselves. */
export const LANGUAGE_NAMES: Record<string, string> = {
  de: "Deutsch",
  en: "English",
  es: "Español",
  fr: "Français",
  ja: "日本語",
  pt: "Português (Brasil)",
};
