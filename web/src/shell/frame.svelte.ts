/** What of the frame is open. */

import { MediaQuery } from "svelte/reactivity";
import { Remembered } from "../live/localSettings.svelte";

export const LEFT = { least: 208, most: 480 };

class Frame {
  #wide = new MediaQuery("min-width: 75rem");

  #drawer = $state(false);
  #peopleOver = $state(false);
  /** What had the keyboard before something lay over the page. */
  #opener: Element | null = null;
  help = $state(false);
  status = $state(false);
  pause = $state(false);
  invite = $state(false);

  #left = new Remembered("left", true);
  #people = new Remembered("people", true);
  #width = new Remembered("width", 280);

  /** On a phone: the side bar over the page. */
  get drawer(): boolean {
    return this.#drawer;
  }
  set drawer(open: boolean) {
    this.#noteOpener();
    this.#drawer = open;
  }

  /** On less wide windows: the people over the page. */
  get peopleOver(): boolean {
    return this.#peopleOver;
  }
  set peopleOver(open: boolean) {
    this.#noteOpener();
    this.#peopleOver = open;
  }

  get left(): boolean {
    return this.#left.value;
  }
  set left(open: boolean) {
    this.#left.value = open;
  }

  /** Beside the page, where there is room. */
  get people(): boolean {
    return this.#people.value;
  }
  set people(open: boolean) {
    this.#people.value = open;
  }

  /** Of the side bar, in pixels. */
  get width(): number {
    return this.#width.value;
  }
  set width(pixels: number) {
    this.#width.value = Math.round(Math.min(LEFT.most, Math.max(LEFT.least, pixels)));
  }

  /** Whether people are in sight, beside the page or over it. */
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

  /** What lies over the page goes. Answers whether there was something. */
  settle(): boolean {
    const was = this.#drawer || this.#peopleOver;
    this.#drawer = this.#peopleOver = false;
    return was;
  }

  /** The same, where one goes nowhere else: the keyboard is where it was before. */
  leave(): boolean {
    const was = this.settle();
    if (was && this.#opener instanceof HTMLElement) this.#opener.focus({ preventScroll: true });
    return was;
  }

  #noteOpener(): void {
    if (!this.#drawer && !this.#peopleOver) this.#opener = document.activeElement;
  }
}

export function isPhone(): boolean {
  return window.matchMedia("(max-width: 48rem)").matches;
}

export const frame = new Frame();
