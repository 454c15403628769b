/** Loads messages into lists. */

import { messageOf, type Data, type Message } from "../data/data";
import { trimAround, hasId, listedMessages, mergeIds, type MessageList } from "../data/lists";
import { matches, nameOf } from "../data/narrow";
import type { Narrow, Term } from "../data/conversations";
import {
  FIRST_PAGE,
  messagesQuery,
  takeEarlyMessages,
  type Anchor,
  type MessagesResponse,
} from "../wire/early";
import { changedMessageIds } from "../wire/events";
import { get } from "../wire/http";
import type { WireMessage } from "../wire/objects";
import type { Store } from "./store.svelte";

/** Messages to load before and after an anchor. */
const PAGE = { first: FIRST_PAGE, later: 60 };
let isFirstView = true;

/** Number of lists kept in the background. */
const KEPT_LISTS = 24;

/** Visitors can read only web-public channels. */
const WEB_PUBLIC: Term = { operator: "channels", operand: "web-public" };

/** The narrow as the API expects it. */
export function apiNarrow(narrow: Narrow, { visiting }: Pick<Store, "visiting">): Term[] {
  const terms = visiting ? [...narrow, WEB_PUBLIC] : narrow;
  return terms.map((term) => ({ ...term, negated: term.negated ?? false }));
}

function ask(
  narrow: Term[],
  anchor: Anchor,
  before: number,
  after: number,
): Promise<MessagesResponse> {
  return get<MessagesResponse>("/messages", messagesQuery(narrow, anchor, before, after));
}

/** Attempts to load a page while its messages keep changing. */
const ATTEMPTS = 4;

/** Ask again if an event changed a message of the response while it was pending, and drop deleted
 * messages. */
export async function upToDate(
  store: Store,
  ask: () => Promise<MessagesResponse>,
): Promise<MessagesResponse> {
  const changed = new Set<number>();
  const deleted = new Set<number>();
  for (let attempt = 1; ; attempt += 1) {
    changed.clear();
    let all = false;
    const restarts = store.restarts;
    const stop = store.onEvent((event) => {
      all ||= event["all"] === true;
      for (const id of changedMessageIds(event)) {
        (event.type === "delete_message" ? deleted : changed).add(id);
      }
    });
    try {
      const answer = await ask();
      if (store.data.realm["realm_users_incomplete"]) await loadUsersIn(store, answer.messages);
      const messages = answer.messages.filter((message) => !deleted.has(message.id));
      const isNew =
        !all && restarts === store.restarts && !messages.some((message) => changed.has(message.id));
      if (isNew || attempt === ATTEMPTS) return { ...answer, messages };
    } finally {
      stop();
    }
  }
}

/** So that senders have names in large organizations. */
async function loadUsersIn(store: Store, messages: readonly WireMessage[]): Promise<void> {
  await import("./users").then(
    (all) => all.loadUsersIn(store, messages),
    () => undefined,
  );
}

export function loadPage(
  store: Store,
  narrow: Narrow,
  anchor: Anchor,
  before: number,
  after: number,
): Promise<MessagesResponse> {
  return upToDate(store, () => ask(apiNarrow(narrow, store), anchor, before, after));
}

/** Load messages by ID; those that the user can't read are left out. */
export function loadByIds(store: Store, ids: readonly number[]): Promise<MessagesResponse> {
  return upToDate(store, () =>
    get<MessagesResponse>("/messages", {
      message_ids: ids,
      client_gravatar: true,
      apply_markdown: true,
      allow_empty_topic_name: true,
    }),
  );
}

/** Load a narrow around an anchor, keeping loaded messages if it's within them. Returns the message
 * at the anchor or the nearest one; null if the narrow is empty or no longer wanted. */
export async function loadAround(
  store: Store,
  narrow: Narrow,
  anchor: Anchor,
  isWanted = () => true,
): Promise<number | null> {
  const known = store.data.lists.get(nameOf(narrow));
  if (known && !known.stale && typeof anchor === "number") {
    const [first, last] = [known.ids[0], known.ids.at(-1)];
    if (first !== undefined && last !== undefined && first <= anchor && anchor <= last) {
      return anchor;
    }
  }
  if (known && !known.stale && anchor === "newest" && known.foundNewest) {
    return known.ids.at(-1) ?? null;
  }
  const size = isFirstView ? PAGE.first : PAGE.later;
  const early = isFirstView ? await earlyPage(narrow, anchor) : null;
  isFirstView = false;
  const answer = early
    ? await upToDate(
        store,
        askAfter(early, () => ask(apiNarrow(narrow, store), anchor, size, size)),
      )
    : await loadPage(store, narrow, anchor, size, size);
  // Another request may have replaced the list.
  if (!isWanted()) return null;
  put(store, narrow, answer, "afresh");
  if (answer.found_anchor) return answer.anchor;
  const ids = answer.messages.map((message) => message.id);
  return ids.find((id) => id >= answer.anchor) ?? ids.at(-1) ?? null;
}

/** What the page asked for before this script arrived, if it's what is wanted. */
async function earlyPage(narrow: Narrow, anchor: Anchor): Promise<MessagesResponse | null> {
  const early = takeEarlyMessages();
  if (!early || nameOf(early.narrow) !== nameOf(narrow)) return null;
  const answer = await early.answer;
  const isWanted =
    anchor === early.anchor ||
    (anchor === "newest" && answer?.found_newest) ||
    answer?.messages.some((message) => message.id === anchor);
  return isWanted ? answer : null;
}

/** Return a response that is already there first, and ask again after it. */
function askAfter<Response>(first: Response, ask: () => Promise<Response>) {
  let isUsed = false;
  return async () => {
    if (isUsed) return ask();
    isUsed = true;
    return first;
  };
}

/** Load earlier messages. */
export async function loadOlder(store: Store, narrow: Narrow): Promise<void> {
  const list = store.data.lists.get(nameOf(narrow));
  const first = list?.ids[0];
  if (!list || list.foundOldest) return;
  const answer = await loadPage(store, narrow, first ?? "newest", 100, 0);
  // If the list was replaced, adding these would leave a gap.
  if (store.data.lists.get(nameOf(narrow))?.ids[0] === first) put(store, narrow, answer, "older");
}

/** Load later messages. */
export async function loadNewer(store: Store, narrow: Narrow): Promise<void> {
  const list = store.data.lists.get(nameOf(narrow));
  const last = list?.ids.at(-1);
  if (!list || list.foundNewest) return;
  const answer = await loadPage(store, narrow, last ?? "oldest", 0, 100);
  const now = store.data.lists.get(nameOf(narrow));
  if (last === undefined || (now && hasId(now.ids, last))) put(store, narrow, answer, "newer");
}

function put(
  store: Store,
  narrow: Narrow,
  answer: MessagesResponse,
  part: "afresh" | "older" | "newer",
): void {
  store.change((data) => {
    const name = nameOf(narrow);
    const messages = new Map(data.messages);
    const topicNames = new Map(data.topicNames);
    for (const wire of answer.messages) {
      const message = messageOf(wire, wire.flags ?? [], data.me);
      messages.set(wire.id, message);
      if (message.type === "stream") topicNames.set(message.key, message.subject);
    }
    const ids = answer.messages.map((message) => message.id);
    const before = data.lists.get(name);
    const fresh: MessageList = {
      narrow,
      ids,
      foundOldest: answer.found_oldest,
      foundNewest: answer.found_newest,
      stale: false,
    };
    let list = fresh;
    if (before && part === "older") {
      list = { ...before, ids: mergeIds(ids, before.ids), foundOldest: answer.found_oldest };
    } else if (before && part === "newer") {
      list = { ...before, ids: mergeIds(before.ids, ids), foundNewest: answer.found_newest };
    }
    // Messages that arrived by event while the request was pending.
    if (list.foundNewest) list = withArrived(list, data, messages);
    const lists = new Map(data.lists);
    lists.delete(name);
    lists.set(name, list);
    return trimmed({ ...data, messages, topicNames, lists }, store.shownLists);
  });
}

function withArrived(
  list: MessageList,
  data: Data,
  messages: ReadonlyMap<number, Message>,
): MessageList {
  const last = list.ids.at(-1) ?? 0;
  const arrived = [...messages.values()]
    .filter((message) => message.id > last && matches(list.narrow, message, data) === true)
    .map((message) => message.id);
  return arrived.length ? { ...list, ids: mergeIds(list.ids, arrived) } : list;
}

/** Trim a long list at the end farther from a message. */
export function trimList(store: Store, name: string, at: number): void {
  const list = store.data.lists.get(name);
  if (!list || trimAround(list, at) === list) return;
  store.change((data) => {
    const lists = new Map(data.lists);
    lists.set(name, trimAround(list, at));
    return { ...data, lists, messages: listedMessages(data.messages, lists.values()) };
  });
}

/** Drop the least recently loaded lists that aren't shown, and messages only they contain. */
function trimmed(data: Data, shown: readonly string[]): Data {
  const kept = [...data.lists.keys()].slice(-KEPT_LISTS).concat(shown);
  const lists = new Map([...data.lists].filter(([name]) => kept.includes(name)));
  if (lists.size === data.lists.size) return data;
  return { ...data, lists, messages: listedMessages(data.messages, lists.values()) };
}

/** A message's Markdown source. */
export async function messageSource(messageId: number): Promise<string> {
  const { message } = await get<{ message: { content: string } }>(`/messages/${messageId}`, {
    apply_markdown: false,
    allow_empty_topic_name: true,
  });
  return message.content;
}
