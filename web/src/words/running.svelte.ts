/**
 * What the pages say by which the place is run from day to day. They are loaded with those pages, in
 * all languages, and not with the rest: few people ever open them.
 */

import { running as de } from "./de/running";
import { running as en } from "./en/running";
import { running as es } from "./es/running";
import { words } from "./index.svelte";

export type RunningWords = typeof en;

const LANGUAGES: Readonly<Record<string, RunningWords>> = { de, en, es };

/** Those of one's language. */
export function running(): RunningWords {
  return LANGUAGES[words.language] ?? en;
}
