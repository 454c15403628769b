/** Notifications from pushes: grouped by conversation, with reply and mark-as-read actions, and
 * closed when read elsewhere. `service/notifications/push.py` defines the payload. */
/// <reference lib="webworker" />

declare const self: ServiceWorkerGlobalScope;

interface Around {
  /** Number of unread messages. */
  badge: number;
  /** Tags that are still unread: notifications of other conversations close. */
  open: string[];
}

export interface MessagePush extends Around {
  type: "message";
  tag: string;
  title: string;
  body: string;
  organization: string;
  url: string;
  sent_at: number;
  message_ids: number[];
  to: { user_ids: number[] } | { channel_id: number; topic: string };
  words: { reply: string; read: string; placeholder: string; failed: string };
}

interface ReadPush extends Around {
  type: "read";
  tag: string;
}

interface TestPush {
  type: "test";
  tag: string;
  title: string;
  body: string;
  url: string;
}

/** TypeScript's types lack actions. */
interface WithActions extends NotificationOptions {
  actions?: { action: string; title: string; type?: "button" | "text"; placeholder?: string }[];
  renotify?: boolean;
  timestamp?: number;
}

interface WithReply extends NotificationEvent {
  reply?: string | null;
}

interface Cookies {
  get(name: string): Promise<{ value: string } | null>;
}

const ICON = "/static/icon-192.png";
const REPLY = "reply";
const READ = "read";

/** Handle pushes. */
export function takePushes(): void {
  self.addEventListener("push", (event) => {
    const payload = parsed(event.data);
    event.waitUntil(payload ? take(payload) : show("", { body: "" }));
  });
  self.addEventListener("notificationclick", (event: WithReply) => {
    event.notification.close();
    event.waitUntil(clicked(event.notification, event.action, event.reply ?? ""));
  });
}

function parsed(data: PushMessageData | null): MessagePush | ReadPush | TestPush | null {
  try {
    return data?.json() as MessagePush | ReadPush | TestPush;
  } catch {
    // Not a push of ours.
    return null;
  }
}

async function take(payload: MessagePush | ReadPush | TestPush): Promise<void> {
  if (payload.type === "test") {
    await show(payload.title, { body: payload.body, tag: payload.tag, data: payload });
    return;
  }
  // In parallel: notifications don't wait for the badge.
  await Promise.all([setBadge(payload.badge), showAndClose(payload)]);
}

async function showAndClose(payload: MessagePush | ReadPush): Promise<void> {
  const open = new Set(payload.open);
  const shown = await self.registration.getNotifications();
  for (const notification of shown) {
    const isOver =
      notification.tag !== "test" && notification.tag !== "" && !open.has(notification.tag);
    // The list is limited to 20 tags.
    if (isOver && (open.size < 20 || notification.tag === payload.tag)) notification.close();
  }
  if (payload.type === "read" || (await isLookedAt())) return;
  const { words } = payload;
  await show(payload.title, {
    body: payload.body,
    tag: payload.tag,
    renotify: true,
    timestamp: payload.sent_at * 1000,
    data: payload,
    actions: [
      { action: REPLY, type: "text", title: words.reply, placeholder: words.placeholder },
      { action: READ, title: words.read },
    ],
  });
}

function show(title: string, options: WithActions): Promise<void> {
  const { registration } = self;
  return registration.showNotification(title || registration.scope, { icon: ICON, ...options });
}

/** Whether a window is focused, which notifies by itself. Browsers that require a visible
 * notification get one anyway. */
async function isLookedAt(): Promise<boolean> {
  const { userAgent } = self.navigator;
  if (/AppleWebKit/.test(userAgent) && !/Chrom/.test(userAgent)) return false;
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  return windows.some((window) => window.focused);
}

async function setBadge(count: number): Promise<void> {
  try {
    await (count ? self.navigator.setAppBadge(count) : self.navigator.clearAppBadge());
  } catch {
    // Not supported everywhere.
  }
}

async function clicked(notification: Notification, action: string, reply: string): Promise<void> {
  const payload = notification.data as MessagePush | TestPush | null;
  if (payload?.type !== "message") {
    await open(payload?.url ?? "/");
  } else if (action === READ) {
    if (!(await callApi("/messages/flags", flagged(payload)))) await open(payload.url);
  } else if (action === REPLY && reply.trim()) {
    if (await callApi("/messages", answer(payload, reply))) {
      await callApi("/messages/flags", flagged(payload));
    } else {
      // Keep the reply's text so that it can be copied.
      await show(payload.title, {
        body: payload.words.failed + reply,
        tag: payload.tag,
        data: payload,
      });
    }
  } else {
    await open(payload.url);
  }
}

function flagged(payload: MessagePush): Record<string, string> {
  return { messages: JSON.stringify(payload.message_ids), op: "add", flag: "read" };
}

function answer({ to }: MessagePush, content: string): Record<string, string> {
  return "user_ids" in to
    ? { type: "direct", to: JSON.stringify(to.user_ids), content }
    : { type: "stream", to: String(to.channel_id), topic: to.topic, content };
}

/** Call the API with the session cookie and CSRF token. */
async function callApi(path: string, parameters: Record<string, string>): Promise<boolean> {
  try {
    const answered = await fetch(`/api/v1${path}`, {
      method: "POST",
      credentials: "same-origin",
      headers: { "X-CSRF-Token": await csrfToken() },
      body: new URLSearchParams(parameters),
    });
    return answered.ok;
  } catch {
    // Offline: the caller opens the conversation instead.
    return false;
  }
}

async function csrfToken(): Promise<string> {
  const { cookieStore } = self as unknown as { cookieStore?: Cookies };
  for (const name of ["__Host-tertulia_csrf", "tertulia_csrf"]) {
    const cookie = await cookieStore?.get(name);
    if (cookie) return decodeURIComponent(cookie.value);
  }
  return "";
}

/** Focus a window and navigate, or open a new one. */
async function open(url: string): Promise<void> {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const clients = windows.find((window) => new URL(window.url).pathname === "/");
  if (!clients) {
    await self.clients.openWindow(url);
    return;
  }
  clients.postMessage({ type: "go", url });
  // Browsers may refuse it.
  await clients.focus().catch(() => undefined);
}
