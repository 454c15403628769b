/** Reminders that are set, moved, and removed without a dialog. */

import type { App } from "../app";
import { timeText } from "../compose/scheduling";
import type { Message } from "../data/data";
import { reminderNote } from "../data/reminders";
import { defaultTime } from "../data/times";
import { del, post } from "../wire/http";
import type { Reminder } from "../wire/objects";
import { words } from "../words/index.svelte";

/** Set a reminder. Returns its ID. */
async function setReminder(messageId: number, at: number, note = ""): Promise<number> {
  const { reminder_id } = await post<{ reminder_id: number }>("/reminders", {
    message_id: messageId,
    scheduled_delivery_timestamp: at,
    ...(note ? { note } : {}),
  });
  return reminder_id;
}

const remove = (id: number) => del(`/reminders/${id}`);

/** Bring a message back tomorrow morning, unless it comes back anyway. Throws request errors. */
export async function followUp({ store, toasts }: App, { id }: Message): Promise<void> {
  const known = [...store.data.reminders.values()].find(
    (one) => one.reminder_target_message_id === id && !one.failed,
  );
  if (known) {
    const time = timeText(known.scheduled_delivery_timestamp, store.settings);
    toasts.info(words.later.already({ time }));
    return;
  }
  const at = defaultTime(new Date());
  const reminderId = await setReminder(id, at);
  const time = timeText(at, store.settings);
  toasts.undoable(words.compose.reminderSet({ time }), () => remove(reminderId));
}

/** Replace a reminder by one at another time. Throws request errors; if the old one can't be removed,
 * both remain. */
export async function snooze(
  { store, toasts }: App,
  reminder: Reminder,
  at: number,
): Promise<void> {
  const { reminder_target_message_id: messageId, scheduled_delivery_timestamp: before } = reminder;
  const note = reminderNote(reminder);
  const now = await setReminder(messageId, at, note);
  await remove(reminder.reminder_id);
  const time = timeText(at, store.settings);
  const back = async () => {
    await setReminder(messageId, before, note);
    await remove(now);
  };
  toasts.undoable(words.compose.reminderSet({ time }), back);
}

/** Remove a reminder, with an offer to undo. */
export async function finish({ toasts }: App, reminder: Reminder): Promise<void> {
  const { reminder_target_message_id: messageId, scheduled_delivery_timestamp: at } = reminder;
  if (!(await toasts.attempt(remove(reminder.reminder_id)))) return;
  toasts.undoable(words.later.wasDone, () => setReminder(messageId, at, reminderNote(reminder)));
}
