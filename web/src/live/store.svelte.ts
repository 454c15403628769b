/** The reactive store for components: each slice updates only when it changes. */

import type { ServerEvent, Snapshot } from "../wire/events";
import { unreadCounts } from "../data/counts";
import { dataOf, type Data } from "../data/data";
import { fold } from "../data/fold";

export class Store {
  #data = $state.raw<Data>() as Data;

  /** Number of times the client registered again. */
  restarts = $state(0);

  /** Names of the message lists in view, and of all that were. */
  shownLists: readonly string[] = [];
  readonly visitedLists = new Set<string>();

  readonly me = $derived(this.#data.me);
  /** Whether the user is a visitor without an account (ID 0). */
  readonly visiting = $derived(this.#data.me === 0);
  readonly realm = $derived(this.#data.realm);
  readonly settings = $derived(this.#data.settings);
  readonly defaultSettings = $derived(this.#data.defaultSettings);
  readonly users = $derived(this.#data.users);
  readonly bots = $derived(this.#data.bots);
  readonly groups = $derived(this.#data.groups);
  readonly channels = $derived(this.#data.channels);
  readonly folders = $derived(this.#data.folders);
  readonly defaultChannels = $derived(this.#data.defaultChannels);
  readonly topicPolicies = $derived(this.#data.topicPolicies);
  readonly topicNames = $derived(this.#data.topicNames);
  readonly unread = $derived(this.#data.unread);
  readonly starred = $derived(this.#data.starred);
  readonly mutedUsers = $derived(this.#data.mutedUsers);
  readonly alertWords = $derived(this.#data.alertWords);
  readonly drafts = $derived(this.#data.drafts);
  readonly snippets = $derived(this.#data.snippets);
  readonly scheduled = $derived(this.#data.scheduled);
  readonly reminders = $derived(this.#data.reminders);
  readonly navigationViews = $derived(this.#data.views);
  readonly directs = $derived(this.#data.directs);
  readonly presences = $derived(this.#data.presences);
  readonly statuses = $derived(this.#data.statuses);
  readonly typing = $derived(this.#data.typing);
  readonly emoji = $derived(this.#data.emoji);
  readonly linkifiers = $derived(this.#data.linkifiers);
  readonly playgrounds = $derived(this.#data.playgrounds);
  readonly domains = $derived(this.#data.domains);
  readonly profileFields = $derived(this.#data.profileFields);
  readonly profileFieldTypes = $derived(this.#data.profileFieldTypes);
  readonly onboarding = $derived(this.#data.onboarding);
  readonly invitesChanged = $derived(this.#data.invitesChanged);
  readonly messages = $derived(this.#data.messages);
  readonly lists = $derived(this.#data.lists);

  /** The user's own account. */
  readonly self = $derived(this.#data.users.get(this.#data.me));

  /** Whether users are still being loaded (`users.ts`). */
  readonly peopleComing = $derived(this.#data.realm["realm_users_incomplete"] === true);

  /** Unread counts, computed once for all components. */
  readonly unreadCounts = $derived(unreadCounts(this));

  #listeners = new Set<(event: ServerEvent) => void>();

  constructor(snapshot: Snapshot) {
    this.#data = dataOf(snapshot);
  }

  /** The current state as a whole. Reading it tracks every change, so components should use
   * slices. */
  get data(): Data {
    return this.#data;
  }

  /** Apply events. */
  take(events: readonly ServerEvent[]): void {
    this.#data = fold(this.#data, events);
    for (const event of events) for (const listener of this.#listeners) listener(event);
  }

  /** Replace the state with a new snapshot; messages are reloaded. */
  restart(snapshot: Snapshot): void {
    const { lists, messages } = this.#data;
    const fresh = dataOf(snapshot);
    // Keep known users until they are reloaded.
    if (snapshot.realm_users_incomplete) {
      fresh.users = new Map([...this.#data.users, ...fresh.users]);
    }
    const stale = [...lists].map(([name, list]) => [name, { ...list, stale: true }] as const);
    this.restarts += 1;
    this.#data = { ...fresh, messages, lists: new Map(stale) };
  }

  /** Apply a change other than an event, such as a response. */
  change(make: (data: Data) => Data): void {
    this.#data = make(this.#data);
  }

  /** Listen to events after they are applied. Returns a function that stops. */
  onEvent(listener: (event: ServerEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
