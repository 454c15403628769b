/** The language that this browser's client spoke last. */

import { Remembered } from "./localSettings.svelte";

/** Spoken until the server has said whose it is: it comes while the server is asked. */
export const lastLanguage = new Remembered<string>("language", navigator.language);
