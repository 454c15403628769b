/** What of the frame is open. */

import { MediaQuery } from "svelte/reactivity";
import { Remembered } from "../live/localSettings.svelte";

export const LEFT = { least: 208, most: 480 };

class Frame {
  #wide = new MediaQuery("min-width: 75rem");

  /** On a phone: the side bar over the page. */
  drawer = $state(false);
  /** On less wide windows: the people over the page. */
  peopleOver = $state(false);
  help = $state(false);
  status = $state(false);
  pause = $state(false);
  invite = $state(false);

  #left = new Remembered("left", true);
  #people = new Remembered("people", true);
  #width = new Remembered("width", 280);

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
    else this.peopleOver = !this.peopleOver;
  }

  toggleLeft(): void {
    if (isPhone()) this.drawer = !this.drawer;
    else this.left = !this.left;
  }

  /** What lies over the page goes. Answers whether there was something. */
  settle(): boolean {
    const was = this.drawer || this.peopleOver;
    this.drawer = this.peopleOver = false;
    return was;
  }
}

export function isPhone(): boolean {
  return window.matchMedia("(max-width: 48rem)").matches;
}

export const frame = new Frame();
