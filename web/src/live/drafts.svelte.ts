/** Drafts: saved locally on every keystroke, and synced to the server shortly after. */

import { type ConversationKey, keyOf, wholeMove } from "../data/conversations";
import {
  withSentVersion,
  findCreated,
  draftConversation,
  draftFor,
  draftKey,
  isDirty,
  mergeDrafts,
  seconds,
  draftFingerprint,
  type DraftContent,
  type LocalDraft,
} from "../data/drafts";
import { del, get, isTransient, patch, post, ApiError } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import type { Draft as ServerDraft } from "../wire/objects";
import { AccountStorage, newId } from "./storage.svelte";
import type { Store } from "./store.svelte";
import { followMissedMove } from "./movedTopics";
import { recentOf } from "./recent.svelte";
import { claimWindow, type Windows } from "./windows";

export type { LocalDraft, DraftContent };

const SYNC_DELAY = 1000;
const MAX_SYNC_DELAY = 4000;
/** The most recent drafts, whose topics are looked for after a new registration. */
const MOST_FOLLOWED = 20;

export class Drafts {
  /** Includes deleted drafts that the server may still have. */
  #records = $state.raw<ReadonlyMap<string, LocalDraft>>(new Map());
  /** All drafts, local and on the server. */
  readonly all: ReadonlyMap<string, LocalDraft> = $derived(
    new Map([...this.#records].filter(([, draft]) => draft.gone === undefined)),
  );
  /** Opens a draft; set by the compose box. */
  onOpen: ((draft: LocalDraft) => void) | null = null;

  #kept: AccountStorage;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waitingSince = 0;
  #syncing = false;
  /** Known drafts of the server: unknown ones can't be assumed deleted. */
  #seenIds = new Set<number>();
  #windows: Windows | null = null;
  #stops: (() => void)[] = [];

  /** `isCurrent`: whether the store has the server's current drafts. Offline data doesn't, so drafts
   * that it lacks aren't deleted ones. */
  constructor(
    private readonly store: Store,
    account: string,
    isCurrent = true,
  ) {
    this.#kept = new AccountStorage(account, "draft");
    const local = this.#kept
      .names()
      .map((name) => this.#kept.read<LocalDraft>(name))
      .filter((draft): draft is LocalDraft => draft !== null && typeof draft.content === "string");
    this.#records = new Map(local.map((draft) => [draft.localId, draft]));
    if (isCurrent) this.restarted();
    void claimWindow().then((windows) => (this.#windows = windows));
    this.#stops.push(
      store.onEvent((event) => {
        if (event.type === "drafts") this.#reconcile();
        else this.#follow(event);
      }),
      this.#kept.onChange((name) => this.#reread(name)),
    );
    const soon = () => document.visibilityState === "hidden" && void this.#sync();
    document.addEventListener("visibilitychange", soon);
    this.#stops.push(() => document.removeEventListener("visibilitychange", soon));
    if ([...this.#records.values()].some(isDirty)) this.#later();
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const stop of this.#stops) stop();
  }

  /** After registering again: the server's drafts may differ. */
  restarted(): void {
    for (const { serverId } of this.#records.values()) {
      if (serverId !== null) this.#seenIds.add(serverId);
    }
    this.#reconcile();
    if (this.store.restarts) void this.#followMissed();
  }

  /** Find out whether topics with drafts moved while events were missed. */
  async #followMissed(): Promise<void> {
    const drafts = [...this.all.values()].sort((a, b) => b.at - a.at);
    for (const draft of drafts.slice(0, MOST_FOLLOWED)) {
      const to = draftConversation(draft, this.store.me);
      if (to?.kind !== "topic" || draft.near === undefined) continue;
      try {
        await followMissedMove(this.store, to, draft.near);
      } catch {
        // Offline again: the next registration asks again.
        return;
      }
    }
  }

  find(key: ConversationKey): LocalDraft | null {
    return draftFor(this.all.values(), key, this.store.me);
  }

  /** Save a draft, or delete it if it's empty. Returns its local ID. */
  keep(localId: string | null, draftContent: DraftContent): string | null {
    const before = localId === null ? undefined : this.all.get(localId);
    const { content } = draftContent;
    const to = draftConversation(draftContent, this.store.me);
    if (!content.trim()) {
      if (before) this.discard(before.localId);
      return null;
    }
    if (before && draftFingerprint(before) === draftFingerprint(draftContent))
      return before.localId;
    const draft: LocalDraft = {
      localId: before?.localId ?? newId(),
      serverId: before?.serverId ?? null,
      known: before?.known ?? null,
      sent: before?.sent ?? [],
      ...draftContent,
      at: Date.now(),
      near: to ? recentOf(this.store).newestIn(keyOf(to)) : undefined,
      window: this.#windows?.windowId,
    };
    this.#put(draft);
    this.#later();
    return draft.localId;
  }

  /** Open a draft by its server or local ID. */
  open(id: number | string): void {
    const draft = this.#named(id);
    if (draft) this.onOpen?.(draft);
  }

  discard(id: number | string): void {
    const draft = this.#named(id);
    if (!draft) return;
    if (draft.serverId === null && !draft.sent?.length) {
      this.#drop(draft.localId);
      return;
    }
    this.#put({ ...draft, content: "", gone: Date.now() });
    void this.#sync();
  }

  #named(id: number | string): LocalDraft | undefined {
    if (typeof id === "string") return this.all.get(id);
    return [...this.all.values()].find((draft) => draft.serverId === id);
  }

  #put(draft: LocalDraft): void {
    this.#records = new Map(this.#records).set(draft.localId, draft);
    this.#kept.write(draft.localId, draft);
  }

  #drop(localId: string): void {
    const rest = new Map(this.#records);
    rest.delete(localId);
    this.#records = rest;
    this.#kept.forget(localId);
  }

  /** Drafts follow their topic when it moves. */
  #follow(event: ServerEvent): void {
    const move = wholeMove(event);
    if (!move) return;
    const { from, to } = move;
    for (const draft of this.all.values()) {
      if (draftKey(draft, this.store.me) !== from) continue;
      this.#put({ ...draft, to: [to.channelId], topic: to.topic });
      this.#later();
    }
  }

  /** Another window edited a draft. */
  #reread(name: string): void {
    const draft = this.#kept.read<LocalDraft>(name);
    const rest = new Map(this.#records);
    if (draft) rest.set(name, draft);
    else rest.delete(name);
    this.#records = rest;
  }

  #reconcile(): void {
    const server = this.store.data.drafts;
    for (const id of server.keys()) this.#seenIds.add(id);
    const before = this.#records;
    const after = mergeDrafts(
      before.values(),
      server,
      (id) => `s${id}`,
      (id) => this.#seenIds.has(id),
    );
    const next = new Map(after.map((draft) => [draft.localId, draft]));
    for (const [name, draft] of next) if (before.get(name) !== draft) this.#kept.write(name, draft);
    for (const name of before.keys()) if (!next.has(name)) this.#kept.forget(name);
    this.#records = next;
  }

  /** Unsynced drafts that no other window is syncing. */
  async #work(): Promise<LocalDraft[]> {
    const windows = (this.#windows ??= await claimWindow());
    const work: LocalDraft[] = [];
    for (const draft of this.#records.values()) {
      if (!isDirty(draft) || this.#refused.has(draftFingerprint(draft))) continue;
      const { window: by = windows.windowId } = draft;
      if (by === windows.windowId || !(await windows.isOpen(by))) work.push(draft);
    }
    return work;
  }

  #later(): void {
    clearTimeout(this.#timer);
    this.#waitingSince ||= Date.now();
    const wait = Date.now() - this.#waitingSince > MAX_SYNC_DELAY ? 0 : SYNC_DELAY;
    this.#timer = setTimeout(() => void this.#sync(), wait);
  }

  async #sync(): Promise<void> {
    if (this.#syncing || !this.store.data.settings["enable_drafts_synchronization"]) return;
    this.#syncing = true;
    this.#waitingSince = 0;
    let again = 0;
    try {
      for (const { localId } of await this.#work()) {
        try {
          await this.#syncOne(localId);
        } catch (error) {
          again = error instanceof ApiError ? (error.retryAfter ?? 15) * 1000 : 15_000;
          // An error about this draft doesn't hold the others back.
          if (!(error instanceof ApiError) || error.status < 500) break;
        }
      }
      if (!again && (await this.#work()).length) again = SYNC_DELAY;
    } finally {
      this.#syncing = false;
    }
    if (!again) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#sync(), again);
  }

  /** Drafts that the server rejected: kept locally until they change. */
  #refused = new Set<string>();

  async #syncOne(localId: string): Promise<void> {
    let draft = this.#records.get(localId);
    if (draft?.serverId === null && draft.sent?.length) {
      // Sent without a response: it may exist.
      const { drafts } = await get<{ drafts: ServerDraft[] }>("/drafts");
      draft = this.#records.get(localId);
      const mine = draft && findCreated(draft, drafts);
      if (draft && mine) this.#put((draft = { ...draft, serverId: mine.id }));
    }
    if (!draft || !isDirty(draft)) return;
    if (draft.gone !== undefined) await this.#delete(draft);
    else await this.#write(draft);
  }

  async #write(draft: LocalDraft): Promise<void> {
    const written = draftFingerprint(draft);
    const { localId, type, to, topic, content } = draft;
    const body = { type, to, topic, content, timestamp: seconds(draft) };
    this.#put(withSentVersion(draft));
    let { serverId } = draft;
    try {
      if (serverId === null) {
        const { ids } = await post<{ ids: number[] }>("/drafts", { drafts: [body] });
        serverId = ids[0] ?? null;
      } else {
        await patch(`/drafts/${serverId}`, { draft: body });
      }
    } catch (error) {
      if (!isFinal(error)) throw error;
      const now = this.#records.get(localId);
      if (serverId !== null && error.status === 404) {
        if (now) this.#put({ ...now, serverId: null, known: null, sent: [] });
      } else {
        this.#refused.add(written);
        // A rejected draft doesn't exist.
        if (now && serverId === null) this.#put({ ...now, sent: [] });
      }
      return;
    }
    const now = this.#records.get(localId);
    if (!now) return;
    // The event may have come before the response and created a second draft.
    for (const other of this.#records.values()) {
      if (other.localId !== localId && other.serverId === serverId) this.#drop(other.localId);
    }
    this.#put({ ...now, serverId, known: written });
  }

  async #delete(draft: LocalDraft): Promise<void> {
    if (draft.serverId !== null) {
      try {
        await del(`/drafts/${draft.serverId}`);
      } catch (error) {
        if (!isFinal(error)) throw error;
      }
    }
    const now = this.#records.get(draft.localId);
    if (!now) return;
    if (draft.serverId === null) this.#drop(draft.localId);
    else this.#put({ ...now, deleted: true });
  }
}

/** Whether retrying is pointless. Signed-out users may sign in again. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status !== 401 && !isTransient(error);
}
