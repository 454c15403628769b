/**
 * The desktop application that the client may run in (Zulip's): it has a badge, a name and a picture
 * for each organization, notes that can be answered, a menu, and knows when the machine is idle.
 */

type Listener = (...told: never[]) => void;

/** What the application puts into the page. Not every version has all of it. */
export interface Bridge {
  send_event(name: string, ...told: unknown[]): unknown;
  on_event(name: string, listener: Listener): void;
  new_notification?(
    title: string,
    how: NotificationOptions,
    dispatch: (type: string, event: EventInit) => boolean,
  ): { close(): void };
  get_idle_on_system?(): boolean;
  get_last_active_on_system?(): number;
  set_send_notification_reply_message_supported?(isSupported: boolean): void;
}

export function desktop(): Bridge | null {
  return (globalThis as { electron_bridge?: Bridge }).electron_bridge ?? null;
}

/** Whether somebody is at the machine, and when they last were; null where that is not known. */
export function systemInput(bridge = desktop()): { isIdle: boolean; at: number } | null {
  if (!bridge?.get_idle_on_system || !bridge.get_last_active_on_system) return null;
  return { isIdle: bridge.get_idle_on_system(), at: bridge.get_last_active_on_system() };
}

/** A note of the application's own; null where it shows none. Clicking calls `onclick`. */
export function desktopNote(
  title: string,
  how: NotificationOptions,
  onclick: () => void,
  bridge = desktop(),
): { close(): void } | null {
  if (!bridge?.new_notification) return null;
  const note = bridge.new_notification(title, how, (type) => {
    if (type !== "click") return true;
    onclick();
    note.close();
    return true;
  });
  return note;
}
