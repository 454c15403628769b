/** Complete languages, for tests. */

import type { AllWords } from "./parts";
import { LANGUAGES } from "./languages";

export async function whole(tag: string): Promise<AllWords> {
  const { first, later } = await LANGUAGES[tag]!();
  const [settings, manage, visit] = await Promise.all([
    later.settings(),
    later.manage(),
    later.visit(),
  ]);
  return { ...first, settings, manage, visit };
}
