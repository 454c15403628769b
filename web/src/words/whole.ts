/** Complete languages, for tests. */

import type { AllWords } from "./parts";
import { LANGUAGES } from "./languages";

export async function whole(tag: string): Promise<AllWords> {
  const { first, later: parts } = await LANGUAGES[tag]!();
  const [settings, manage, visit, later, catchUp, files, inbox, keys, status, voice] =
    await Promise.all([
      parts.settings(),
      parts.manage(),
      parts.visit(),
      parts.later(),
      parts.catchUp(),
      parts.files(),
      parts.inbox(),
      parts.keys(),
      parts.status(),
      parts.voice(),
    ]);
  return { ...first, settings, manage, visit, later, catchUp, files, inbox, keys, status, voice };
}
