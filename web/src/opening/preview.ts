/** A conversation before the client has arrived: readable, and laid out like the client's view,
 * which replaces it. Names, days, and text need no words of ours. */

import { fitDimensions, prepareHtml, withoutMe } from "../data/content";
import type { ConversationKey } from "../data/conversations";
import type { Message } from "../data/data";
import { rowsOf, type Row } from "../data/rows";
import { dayName } from "../data/times";
import type { EarlyMessages, MessagesResponse } from "../wire/early";
import type { WireMessage } from "../wire/objects";

/** As in the client's `rendered.ts`, in pixels. */
const PICTURE = { width: 420, height: 280 };

export function showPreview(
  opening: HTMLElement,
  answer: MessagesResponse,
  { narrow, anchor }: EarlyMessages,
): void {
  const { messages } = answer;
  const topic = narrow.some(({ operator }) => operator === "topic");
  const isUnread = ({ flags }: WireMessage) => !flags?.includes("read");
  const first = answer.found_anchor && messages.find(({ id }) => id === answer.anchor);
  const marker = anchor === "first_unread" && first && isUnread(first) ? first.id : null;
  const all = new Map(messages.map((message) => [message.id, keyed(message)]));
  const rows = rowsOf([...all.keys()], all, 0, messages.length, {
    mixed: !topic && messages[0]!.type === "stream",
    marker,
    mutedUsers: new Set(),
  });
  const list = element("div", "list");
  list.append(...rows.flatMap(drawn));
  const head = element("h1", "");
  head.dir = "auto";
  head.textContent = titleOf(messages[0]!, topic);
  opening.querySelector(".page")!.replaceChildren(head, list);
  opening.classList.add("read");
  opening.classList.toggle("people", isPeopleListShown());
  opening.removeAttribute("aria-hidden");
  const shown = marker ?? (anchor === "first_unread" ? null : answer.anchor);
  const row = list.querySelector<HTMLElement>(`[data-id="${shown}"]`);
  const spare = row ? Math.max(0, list.clientHeight - row.offsetHeight) : 0;
  const above = marker ? Math.min(spare, list.clientHeight * 0.2) : spare / 3;
  list.scrollTop = row ? row.offsetTop - list.offsetTop - above : list.scrollHeight;
}

/** As `layout.svelte.ts` stores it. */
function isPeopleListShown(): boolean {
  try {
    return localStorage.getItem("tertulia:people") !== "false";
  } catch {
    // Without storage, it's shown.
    return true;
  }
}

/** Rows only compare keys. */
function keyed(message: WireMessage): Message {
  const key = `${message.stream_id} ${message.subject}` as ConversationKey;
  return { ...message, key } as unknown as Message;
}

function element(name: string, className: string): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  return made;
}

function titleOf({ display_recipient: names, subject }: WireMessage, topic: boolean): string {
  if (Array.isArray(names)) return names.map((user) => user.full_name).join(", ");
  return topic ? `#${names} › ${subject.replace(/^✔ /, "")}` : `#${names}`;
}

function drawn({ message, day, conversation, marker, first }: Row): HTMLElement[] {
  const found: HTMLElement[] = [];
  const language = document.documentElement.lang;
  if (day !== null) {
    const line = element("div", "day");
    line.append(element("span", ""));
    line.firstElementChild!.textContent = dayName(day, Date.now() / 1000, language);
    found.push(line);
  }
  if (conversation) {
    const line = element("h2", "");
    line.dir = "auto";
    line.textContent = message.subject;
    found.push(line);
  }
  if (marker) found.push(element("div", "day new"));
  const row = element("div", first ? "row first" : "row");
  row.dataset["id"] = String(message.id);
  if (first) row.append(element("i", "face"));
  const body = element("div", "body");
  if (first) {
    const name = element("b", "ellipsis");
    name.dir = "auto";
    name.textContent = message.sender_full_name;
    body.append(name);
  }
  body.append(contentOf(message));
  // The place of its reactions, which come with the client.
  if (message.reactions.length) body.append(element("i", "chips"));
  row.append(body);
  found.push(row);
  return found;
}

function contentOf({ content, is_me_message: isMe }: Message): HTMLElement {
  const result = element("div", "content");
  result.dir = "auto";
  // A template's images aren't loaded: they would compete with the client.
  const template = document.createElement("template");
  // The server creates the HTML from an allowlist; nothing from authors can run.
  template.innerHTML = prepareHtml(isMe ? withoutMe(content) : content);
  const parts = template.content;
  const dropped = "audio, video, iframe, .katex-html, .spoiler-content, .message_embed";
  for (const part of parts.querySelectorAll(dropped)) part.remove();
  for (const image of parts.querySelectorAll("img")) image.replaceWith(standIn(image));
  for (const link of parts.querySelectorAll<HTMLAnchorElement>("a[href]")) {
    if (link.getAttribute("href")!.startsWith("#")) continue;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  result.append(document.importNode(parts, true));
  return result;
}

/** A picture's place: an emoji's name, or a box of its size. */
function standIn(image: HTMLImageElement): Node {
  if (image.classList.contains("emoji")) return document.createTextNode(image.alt);
  const box = element("span", "picture");
  const dimensions = image.dataset["originalDimensions"] ?? "";
  const size = fitDimensions(dimensions, PICTURE.width, PICTURE.height);
  if (size) {
    box.style.width = `${size.width}px`;
    box.style.aspectRatio = `${size.width} / ${size.height}`;
  }
  return box;
}
