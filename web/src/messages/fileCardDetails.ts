/** Adds a file's type, size, and actions to its card. */

import Download from "@lucide/svelte/icons/download";
import Open from "@lucide/svelte/icons/external-link";
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
import FileIcon from "../ui/FileIcon.svelte";
import { words } from "../words/index.svelte";
import { overlays } from "./overlays.svelte";
import { previewOf } from "./sharedFiles";

type Icon = Component<{ size?: number | string; "aria-hidden"?: "true" }>;

export function addFileDetails(cards: readonly HTMLElement[]): void {
  for (const card of cards) enhanceFile(card);
}

function enhanceFile(card: HTMLElement): void {
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
  drawKind(fileKind(name), sign);
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
      drawKind(kind, sign);
    }
    offer(card, link, facts, save, audio !== null);
  });
}

/** Show files in place if the browser can, open others that it can display, and download the rest. */
function offer(
  card: HTMLElement,
  link: HTMLAnchorElement,
  facts: FileMetadata,
  save: HTMLElement,
  plays: boolean,
): void {
  const media = plays
    ? undefined
    : previewOf(link.getAttribute("href") ?? "", facts.name, 0, facts);
  if (media)
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      overlays.open({ kind: "lightbox", all: [media], at: 0 });
    });
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
  const element = document.createElement(tag);
  element.className = className;
  return element;
}

function button(address: string, icon: Icon, label: string): HTMLAnchorElement {
  const link = document.createElement("a");
  link.href = address;
  link.className = "act";
  link.title = label;
  link.setAttribute("aria-label", label);
  drawn(icon, link, 18);
  return link;
}

function drawn(icon: Icon, target: HTMLElement, size: number): void {
  mount(icon, { target, props: { size, "aria-hidden": "true" } });
}

function drawKind(kind: FileKind, target: HTMLElement): void {
  mount(FileIcon, { target, props: { kind } });
}
