/** The bridge to Zulip's desktop app: badge, organization name and icon, notifications with
 * replies, menu, and idle detection. */

type Listener = (...args: never[]) => void;

/** The interface that the app injects. Some versions have only part of it. */
export interface Bridge {
  send_event(name: string, ...args: unknown[]): unknown;
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

/** Whether the user is idle, and when they were last active; null if unknown. */
export function systemInput(bridge = desktop()): { isIdle: boolean; at: number } | null {
  if (!bridge?.get_idle_on_system || !bridge.get_last_active_on_system) return null;
  return { isIdle: bridge.get_idle_on_system(), at: bridge.get_last_active_on_system() };
}

/** Show a native notification; null if the app can't. Clicking calls `onclick`. */
export function desktopNote(
  title: string,
  options: NotificationOptions,
  onclick: () => void,
  bridge = desktop(),
): { close(): void } | null {
  if (!bridge?.new_notification) return null;
  const notification = bridge.new_notification(title, options, (type) => {
    if (type !== "click") return true;
    onclick();
    notification.close();
    return true;
  });
  return notification;
}
