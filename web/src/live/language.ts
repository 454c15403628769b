/** The language last used in this browser. */

import { Remembered } from "./localSettings.svelte";

/** Used until the server sends the account's language. */
export const lastLanguage = new Remembered<string>("language", navigator.language);
