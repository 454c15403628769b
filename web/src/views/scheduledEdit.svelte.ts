/** The scheduled message being edited. Outlives its dialog, so that changes aren't lost. */

import { Composition } from "../compose/composition.svelte";
import type { ScheduledMessage } from "../wire/objects";

export interface ScheduledEdit {
  one: ScheduledMessage;
  composition: Composition;
  /** The original text as the box shows it. */
  before: string;
  /** In seconds; null if undecided. */
  at: number | null;
}

class ScheduledEditing {
  current = $state.raw<ScheduledEdit | null>(null);

  begin(message: ScheduledMessage): void {
    const composition = new Composition(message.content);
    const before = composition.content;
    this.current = { one: message, composition, before, at: message.scheduled_delivery_timestamp };
  }

  resume(edit: ScheduledEdit): void {
    this.current = edit;
  }

  end(edit: ScheduledEdit): void {
    if (this.current === edit) this.current = null;
  }
}

export function isUnsaved({ one: message, composition, before, at }: ScheduledEdit): boolean {
  return composition.content !== before || at !== message.scheduled_delivery_timestamp;
}

export const scheduledEdit = new ScheduledEditing();
