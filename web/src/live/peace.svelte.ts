/** Whether notifications are paused. `quieting` computes it and is loaded later. */

import type { QuietTimes } from "../data/quiet";

class Peace {
  times = $state.raw<QuietTimes | null>(null);
  /** End of the pause; 0 if notifications are on. */
  until = $state(0);
}

export const peace = new Peace();
