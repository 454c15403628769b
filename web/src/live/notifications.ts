/** Desktop notifications while the client is open but not in view. */

import type { App } from "../app";
import { conversationOf } from "../data/conversations";
import type { Message } from "../data/data";
import { conversationName } from "../data/names";
import { narrowOf } from "../data/narrow";
import { notificationEffect, notificationText } from "../data/notifications";
import { words } from "../words/index.svelte";
import { desktop, desktopNote } from "./desktop";
import { quietTimes } from "./quietTimes.svelte";
import { offerPush } from "./push";
import { followQuietTimes } from "./quietUpdates";

/** Returns a function that stops it. */
export function startNotifying(app: App): () => void {
  const { store } = app;
  const stops = [
    followQuietTimes(store),
    store.onEvent((event) => {
      if (event.type !== "message" || isLookedAt()) return;
      const message = store.data.messages.get((event["message"] as { id: number }).id);
      if (!message) return;
      if (isForMe(store.me, message)) offerPush(app);
      if (quietTimes.until || quietTimes.times?.channels.has(message.stream_id ?? 0)) return;
      const notice = notificationEffect(store.data, message);
      if (notice.isAudible) void sound(String(store.settings["notification_sound"]));
      if (notice.shown && mayNotify()) show(app, message);
    }),
  ];
  return () => stops.forEach((stop) => stop());
}

/** Whether the user should see it at all: it's by someone else. */
function isForMe(me: number, message: Message): boolean {
  const isTo = message.type === "private" || message.flags.includes("mentioned");
  return isTo && message.sender_id !== me;
}

function isLookedAt(): boolean {
  return document.visibilityState === "visible" && document.hasFocus();
}

function mayNotify(): boolean {
  if (desktop()?.new_notification) return true;
  return typeof Notification !== "undefined" && Notification.permission === "granted";
}

function show(app: App, message: Message): void {
  const { store, router } = app;
  const { users, channels, topicNames, me, settings } = store.data;
  const conversation = conversationOf(message.key, topicNames);
  const hidden =
    message.type === "private" && settings["pm_content_in_desktop_notifications"] === false;
  const title =
    conversation.kind === "direct" && conversation.people.length < 2
      ? message.sender_full_name
      : `${message.sender_full_name} · ${conversationName(users, channels, conversation, me)}`;
  const options = {
    body: hidden ? words.shell.notice.hidden : notificationText(message.content),
    icon: message.avatar_url ?? "/static/icon-192.png",
    silent: true,
  };
  const open = () => {
    window.focus();
    router.toNarrow(narrowOf(conversation), message.id);
  };
  // The desktop app identifies the message to reply to by the tag.
  if (desktopNote(title, { ...options, tag: String(message.id) }, open)) return;
  const notification = create(title, { ...options, tag: message.key });
  if (!notification) return;
  notification.onclick = () => {
    open();
    notification.close();
  };
}

/** Null if pages can't show notifications, as on phones. */
function create(title: string, options: NotificationOptions): Notification | null {
  try {
    return new Notification(title, options);
  } catch {
    // Phones allow them only in service workers.
    return null;
  }
}

let audio: AudioContext | null = null;

/** By `notification_sound`: start time in seconds and frequency in Hz of each tone. */
const TONES: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  // Like a spoon on a cup.
  zulip: [
    [0, 1318.5],
    [0.12, 1760],
  ],
  ding: [[0, 1046.5]],
  none: [],
};

async function sound(name: string): Promise<void> {
  const tones = TONES[name] ?? TONES["zulip"] ?? [];
  if (!tones.length) return;
  audio ??= new AudioContext();
  if (audio.state === "suspended") await audio.resume().catch(() => undefined);
  for (const [at, frequency] of tones) {
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    const from = audio.currentTime + at;
    tone.frequency.value = frequency;
    volume.gain.setValueAtTime(0.12, from);
    volume.gain.exponentialRampToValueAtTime(0.0001, from + 0.5);
    tone.connect(volume).connect(audio.destination);
    tone.start(from);
    tone.stop(from + 0.5);
  }
}
