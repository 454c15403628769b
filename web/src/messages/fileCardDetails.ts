/** Adds a file's type, size, and actions to its card. */

import Archive from "@lucide/svelte/icons/file-archive";
import Code from "@lucide/svelte/icons/file-code";
import Download from "@lucide/svelte/icons/download";
import File from "@lucide/svelte/icons/file";
import Film from "@lucide/svelte/icons/file-play";
import Open from "@lucide/svelte/icons/external-link";
import Picture from "@lucide/svelte/icons/file-image";
import Slides from "@lucide/svelte/icons/file-chart-pie";
import Sound from "@lucide/svelte/icons/file-music";
import Table from "@lucide/svelte/icons/file-spreadsheet";
import Text from "@lucide/svelte/icons/file-text";
import { mount, type Component } from "svelte";
import {
  extensionOf,
  fileKind,
  pathIdOf,
  downloadUrl,
  formatSize,
  type FileKind,
} from "../data/files";
import { fileMetadata, type FileMetadata } from "../live/fileMetadata";
import { findDuration } from "../ui/audioDuration";
import { words } from "../words/index.svelte";

type Icon = Component<{ size?: number | string; "aria-hidden"?: "true" }>;

const ICONS: Record<FileKind, Icon> = {
  text: Text,
  table: Table,
  slides: Slides,
  archive: Archive,
  code: Code,
  picture: Picture,
  sound: Sound,
  film: Film,
  other: File,
};

export function addFileDetails(cards: readonly HTMLElement[]): void {
  for (const card of cards) dressFile(card);
}

function dressFile(card: HTMLElement): void {
  const link = card.querySelector("a");
  if (!link) return;
  const address = link.getAttribute("href") ?? "";
  // Show the file name instead of a bare URL.
  if (/^(https?:\/)?\/.*user_uploads\//.test(link.textContent ?? "")) {
    link.textContent = pathIdOf(address).split("/").at(-1) ?? "";
  }
  const name = link.textContent ?? "";
  link.classList.add("name");
  link.dir = "auto";
  const sign = part("span", "sign");
  sign.ariaHidden = "true";
  sign.dataset["kind"] = fileKind(name);
  drawn(ICONS[fileKind(name)], sign, 20);
  const about = part("small", "about");
  about.textContent = typeText(name);
  const save = button(downloadUrl(address), Download, words.media.download({ name }));
  save.download = "";
  card.prepend(sign);
  link.after(about, save);
  const audio = card.querySelector("audio");
  if (audio) findDuration(audio);
  void fileMetadata(pathIdOf(address)).then((facts) => {
    if (!facts) return;
    about.textContent = `${typeText(facts.name)} · ${formatSize(facts.size, words.language)}`;
    const kind = fileKind(facts.name, facts.media_type);
    if (kind !== sign.dataset["kind"]) {
      sign.dataset["kind"] = kind;
      sign.replaceChildren();
      drawn(ICONS[kind], sign, 20);
    }
    offer(card, link, facts, save, audio !== null);
  });
}

/** Open files that browsers can display, download others. */
function offer(
  card: HTMLElement,
  link: HTMLAnchorElement,
  facts: FileMetadata,
  save: HTMLElement,
  plays: boolean,
): void {
  if (!facts.opens) {
    link.href = downloadUrl(link.getAttribute("href") ?? "");
    link.removeAttribute("target");
    link.download = "";
  } else if (!plays) {
    const open = button(link.href, Open, words.media.open({ name: link.textContent ?? "" }));
    open.target = "_blank";
    open.rel = "noopener noreferrer";
    save.before(open);
    card.classList.add("two");
  }
}

/** "PDF", or "File". */
function typeText(name: string): string {
  return extensionOf(name).toUpperCase() || words.media.file;
}

function part(tag: string, className: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}

function button(address: string, icon: Icon, label: string): HTMLAnchorElement {
  const made = document.createElement("a");
  made.href = address;
  made.className = "act";
  made.title = label;
  made.setAttribute("aria-label", label);
  drawn(icon, made, 18);
  return made;
}

function drawn(icon: Icon, target: HTMLElement, size: number): void {
  mount(icon, { target, props: { size, "aria-hidden": "true" } });
}
