/** Whether one is left in peace just now. What finds that out is loaded later (`quieting`). */

import type { QuietTimes } from "../data/quiet";

class Peace {
  times = $state.raw<QuietTimes | null>(null);
  /** Until when nothing rings; 0 where it does. */
  until = $state(0);
}

export const peace = new Peace();
