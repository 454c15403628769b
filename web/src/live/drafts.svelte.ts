/**
 * Drafts: kept in this browser with each key that is pressed, and on the server a moment later.
 */

import type { ConversationKey } from "../data/conversations";
import { draftFor, isDirty, reconciled, shape, type Letter, type LocalDraft } from "../data/drafts";
import { del, isPassing, patch, post, Refused } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import { Kept, newId } from "./browserStorage";
import type { Store } from "./store.svelte";

export type { LocalDraft, Letter };

const PAUSE = 1000;
const LONGEST = 4000;

export class Drafts {
  /** All that there are, here and on the server. */
  all = $state.raw<ReadonlyMap<string, LocalDraft>>(new Map());
  /** Called to show one: the part for writing sets it. */
  onOpen: ((draft: LocalDraft) => void) | null = null;

  #kept: Kept;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waitingSince = 0;
  #syncing = false;
  #deleting = new Set<number>();
  /** Taken out to be sent or edited: what the server still says of it does not bring it back. */
  #stops: (() => void)[] = [];

  constructor(
    private readonly store: Store,
    account: string,
  ) {
    this.#kept = new Kept(account, "draft");
    const local = this.#kept
      .names()
      .map((name) => this.#kept.read<LocalDraft>(name))
      .filter((one): one is LocalDraft => one !== null && typeof one.content === "string");
    this.all = new Map(local.map((one) => [one.localId, one]));
    this.#reconcile();
    this.#stops.push(
      store.onEvent((event) => {
        if (event.type === "drafts") this.#reconcile();
        else if (event.type === "update_message") this.#follow(event);
      }),
      this.#kept.onChange((name) => this.#reread(name)),
    );
    const soon = () => document.visibilityState === "hidden" && void this.#sync();
    document.addEventListener("visibilitychange", soon);
    this.#stops.push(() => document.removeEventListener("visibilitychange", soon));
    if (this.#work().length) this.#later();
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const stop of this.#stops) stop();
  }

  /** After registering anew: what the server has may be other. */
  restarted(): void {
    this.#reconcile();
  }

  find(key: ConversationKey): LocalDraft | null {
    return draftFor(this.all.values(), key, this.store.me);
  }

  /** Keep what is written; without content, nothing is kept. Answers the draft's name. */
  keep(localId: string | null, letter: Letter): string | null {
    const before = localId === null ? undefined : this.all.get(localId);
    if (!letter.content.trim()) {
      if (before) this.discard(before.localId);
      return null;
    }
    if (before && shape(before) === shape(letter)) return before.localId;
    const draft: LocalDraft = {
      localId: before?.localId ?? newId(),
      serverId: before?.serverId ?? null,
      known: before?.known ?? null,
      ...letter,
      at: Date.now(),
    };
    this.#put(draft);
    this.#later();
    return draft.localId;
  }

  /** Open one for writing, by the server's ID or its name here. */
  open(id: number | string): void {
    const draft = this.#named(id);
    if (draft) this.onOpen?.(draft);
  }

  discard(id: number | string): void {
    const draft = this.#named(id);
    if (!draft) return;
    this.#drop(draft.localId);
    if (draft.serverId !== null) {
      this.#deleting.add(draft.serverId);
      void this.#delete(draft.serverId);
    }
  }

  #named(id: number | string): LocalDraft | undefined {
    if (typeof id === "string") return this.all.get(id);
    return [...this.all.values()].find((one) => one.serverId === id);
  }

  #put(draft: LocalDraft): void {
    this.all = new Map(this.all).set(draft.localId, draft);
    this.#kept.write(draft.localId, draft);
  }

  #drop(localId: string): void {
    const rest = new Map(this.all);
    rest.delete(localId);
    this.all = rest;
    this.#kept.forget(localId);
  }

  /** A topic has moved as a whole: what is written to it goes along. */
  #follow(event: ServerEvent): void {
    if (event["propagate_mode"] !== "change_all") return;
    const from = event["stream_id"] as number;
    const was = String(event["orig_subject"] ?? "").toLowerCase();
    const channelId = (event["new_stream_id"] ?? from) as number;
    const topic = String(event["subject"] ?? event["orig_subject"] ?? "");
    for (const draft of this.all.values()) {
      const isThere = draft.type === "stream" && draft.to[0] === from;
      if (!isThere || draft.topic.toLowerCase() !== was) continue;
      this.#put({ ...draft, to: [channelId], topic });
      this.#later();
    }
  }

  /** Another window has written one. */
  #reread(name: string): void {
    const draft = this.#kept.read<LocalDraft>(name);
    const rest = new Map(this.all);
    if (draft) rest.set(name, draft);
    else rest.delete(name);
    this.all = rest;
  }

  #reconcile(): void {
    const server = new Map(this.store.data.drafts);
    for (const id of this.#deleting) server.delete(id);
    const before = this.all;
    const after = reconciled(before.values(), server, (id) => `s${id}`);
    const next = new Map(after.map((one) => [one.localId, one]));
    for (const [name, one] of next) if (before.get(name) !== one) this.#kept.write(name, one);
    for (const name of before.keys()) if (!next.has(name)) this.#kept.forget(name);
    this.all = next;
  }

  #work(): LocalDraft[] {
    return [...this.all.values()].filter(isDirty);
  }

  #later(): void {
    clearTimeout(this.#timer);
    this.#waitingSince ||= Date.now();
    const wait = Date.now() - this.#waitingSince > LONGEST ? 0 : PAUSE;
    this.#timer = setTimeout(() => void this.#sync(), wait);
  }

  async #sync(): Promise<void> {
    if (this.#syncing || !this.store.data.settings["enable_drafts_synchronization"]) return;
    this.#syncing = true;
    this.#waitingSince = 0;
    let again = 0;
    try {
      for (const draft of this.#work()) await this.#syncOne(draft);
    } catch (error) {
      again = error instanceof Refused ? (error.retryAfter ?? 15) * 1000 : 15_000;
    } finally {
      this.#syncing = false;
    }
    if (again) this.#timer = setTimeout(() => void this.#sync(), again);
    else if (this.#work().some((draft) => !this.#refused.has(shape(draft)))) this.#later();
  }

  /** What the server did not want: it stays here alone until it is other. */
  #refused = new Set<string>();

  async #syncOne(draft: LocalDraft): Promise<void> {
    const sent = shape(draft);
    if (this.#refused.has(sent)) return;
    const { type, to, topic, content } = draft;
    const body = { type, to, topic, content, timestamp: Math.floor(draft.at / 1000) };
    let serverId = draft.serverId;
    try {
      if (serverId === null) {
        const { ids } = await post<{ ids: number[] }>("/drafts", { drafts: [body] });
        serverId = ids[0] ?? null;
      } else {
        await patch(`/drafts/${serverId}`, { draft: body });
      }
    } catch (error) {
      if (isPassing(error) || !(error instanceof Refused)) throw error;
      if (serverId !== null && error.status === 404) serverId = null;
      else this.#refused.add(sent);
      const now = this.all.get(draft.localId);
      if (now && serverId !== draft.serverId) this.#put({ ...now, serverId, known: null });
      return;
    }
    const now = this.all.get(draft.localId);
    if (now) {
      // Its event may have come first, as that of a draft from elsewhere.
      for (const other of this.all.values()) {
        if (other.localId !== now.localId && other.serverId === serverId) this.#drop(other.localId);
      }
      this.#put({ ...now, serverId, known: sent });
    } else if (serverId !== null) {
      // It was sent or thrown away in the meantime.
      this.#deleting.add(serverId);
      this.#reconcile();
      await this.#delete(serverId);
    }
  }

  async #delete(serverId: number): Promise<void> {
    try {
      await del(`/drafts/${serverId}`);
    } catch (error) {
      if (isPassing(error)) setTimeout(() => void this.#delete(serverId), 15_000);
    }
  }
}
