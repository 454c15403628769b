/** The state of the layout. */

import { MediaQuery } from "svelte/reactivity";
import { LocalSetting, LocalSettingSet } from "../live/storage.svelte";

export const LEFT = { least: 208, most: 480 };

class Layout {
  #wide = new MediaQuery("min-width: 75rem");

  #drawer = $state(false);
  #peopleOver = $state(false);
  /** The element that had the focus before an overlay opened. */
  #opener: Element | null = null;
  help = $state(false);
  status = $state(false);
  pause = $state(false);
  invite = $state(false);
  /** The view shown next to the current one on wide screens: a fragment. */
  beside = $state<string | null>(null);

  #left = new LocalSetting("left", true);
  #people = new LocalSetting("people", true);
  #width = new LocalSetting("width", 280);

  /** On phones: the sidebar as an overlay. */
  get drawer(): boolean {
    return this.#drawer;
  }
  set drawer(open: boolean) {
    this.#noteOpener();
    this.#drawer = open;
  }

  /** On medium screens: the user list as an overlay. */
  get peopleOver(): boolean {
    return this.#peopleOver;
  }
  set peopleOver(open: boolean) {
    this.#noteOpener();
    this.#peopleOver = open;
  }

  get wide(): boolean {
    return this.#wide.current;
  }

  get left(): boolean {
    return this.#left.value;
  }
  set left(open: boolean) {
    this.#left.value = open;
  }

  /** On wide screens: the user list next to the view. */
  get people(): boolean {
    return this.#people.value;
  }
  set people(open: boolean) {
    this.#people.value = open;
  }

  /** The sidebar's width, in pixels. */
  get width(): number {
    return this.#width.value;
  }
  set width(pixels: number) {
    this.#width.value = Math.round(Math.min(LEFT.most, Math.max(LEFT.least, pixels)));
  }

  /** Whether the user list is visible. */
  get peopleShown(): boolean {
    return this.#wide.current ? this.people : this.peopleOver;
  }

  showPeople(): void {
    if (this.#wide.current) this.people = true;
    else this.peopleOver = true;
  }

  togglePeople(): void {
    if (this.#wide.current) this.people = !this.people;
    else if (!this.leave()) this.peopleOver = true;
  }

  showLeft(): void {
    if (isPhone()) this.drawer = true;
    else this.left = true;
  }

  toggleLeft(): void {
    if (!isPhone()) this.left = !this.left;
    else if (!this.leave()) this.drawer = true;
  }

  /** Close overlays. Returns whether any was open. */
  settle(): boolean {
    const was = this.#drawer || this.#peopleOver;
    this.#drawer = this.#peopleOver = false;
    return was;
  }

  /** Close overlays and return the focus. */
  leave(): boolean {
    const was = this.settle();
    if (was && this.#opener instanceof HTMLElement) this.#opener.focus({ preventScroll: true });
    return was;
  }

  #noteOpener(): void {
    if (!this.#drawer && !this.#peopleOver) this.#opener = document.activeElement;
  }
}

function isPhone(): boolean {
  return window.matchMedia("(max-width: 48rem)").matches;
}

export const layout = new Layout();

/** Collapsed sections of the sidebar. */
export const collapsedSections = new LocalSettingSet("folded", ["inactive"]);

/** Channels with visible topics. */
export const expandedChannels = new LocalSettingSet("channels-open");

type SearchBoxMode = "search" | "jump" | "people";

class SearchBoxState {
  /** Null if it's closed. */
  mode = $state<SearchBoxMode | null>(null);
  /** Initial text. */
  text = $state("");
  /** Counts the times that it begins with the initial text again. */
  session = $state(0);
  /** Whether it stays rendered while it's closed. */
  kept = $state(false);

  open(mode: SearchBoxMode, text = ""): void {
    if (!this.mode) this.session += 1;
    this.mode = mode;
    this.text = text;
  }

  /** Render what the next opening probably shows. */
  prepare(): void {
    if (this.mode) return;
    this.session += 1;
    this.text = "";
  }

  close(): void {
    this.mode = null;
  }
}

export const searchBox = new SearchBoxState();
