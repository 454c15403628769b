/** Enhances rendered HTML in the page: local times, copy buttons, spoilers, internal links. Called
 * for each rendering. */

import { fitDimensions, internalFragment, styleProperty } from "../data/content";
import { pathIdOf } from "../data/files";
import { isMember } from "../data/permissions";
import { fullTime, shortTime } from "../data/times";
import type { Store } from "../live/store.svelte";
import { words } from "../words/index.svelte";
import { makeFileCards } from "./fileCards";
import { overlays, type LightboxMedia } from "./overlays.svelte";
import { messageActions } from "./actions.svelte";

/** Maximum size of images in a message, in pixels. */
const PICTURE = { width: 420, height: 280 };

export function enhanceContent(
  node: HTMLElement,
  html: string,
  store: Store,
  messageId: number,
): void {
  // Fast path: most messages have none of this.
  if (!html.includes("<", 3) || /^<p>[^<]*<\/p>$/.test(html)) return;
  const each = <E extends Element = HTMLElement>(
    mark: string,
    selector: string,
    call: (one: E) => void,
  ) => {
    if (html.includes(mark)) node.querySelectorAll<E>(selector).forEach(call);
  };
  // Remove KaTeX's HTML fallback for MathML.
  each("katex-html", ".katex-html", (one) => one.remove());
  each(" style=", "[data-style]", restyle);
  each("message_embed", ".message_embed", nameEmbed);
  each("codehilite", ".codehilite", (one) => enhanceCode(one, store));
  each("spoiler-block", ".spoiler-block", dressSpoiler);
  each<HTMLTimeElement>("<time", "time", (one) => dressTime(one, store));
  const mentions = ".user-mention, .user-group-mention, .topic-mention";
  each("-mention", mentions, (one) => dressMention(one, store));
  const origins = [window.location.origin, String(store.realm["realm_url"] ?? "")];
  each<HTMLAnchorElement>("href=", "a[href]", (one) => dressLink(one, origins));
  if (html.includes("image")) dressPictures(node, store, messageId);
  if (html.includes("/user_uploads/")) makeFileCards(node);
  each("<table", "table", frameTable);
  // Quotes and lists have their own direction.
  each("<blockquote", "blockquote", (one) => (one.dir = "auto"));
  each("<li", "ul, ol", (one) => (one.dir = "auto"));
}

/** Wide tables scroll horizontally. */
function frameTable(table: HTMLElement): void {
  const frame = document.createElement("div");
  frame.className = "table";
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", words.messages.table);
  for (const head of table.querySelectorAll("th")) {
    if (!head.textContent?.trim()) head.role = "presentation";
  }
  table.replaceWith(frame);
  frame.append(table);
}

/** Apply the server's styles through code, which the page's policy allows. */
function restyle(one: HTMLElement): void {
  const style = one.dataset["style"] ?? "";
  const align = styleProperty(style, "text-align");
  if (align) one.style.textAlign = align === "left" ? "start" : align === "right" ? "end" : align;
  const picture = styleProperty(style, "background-image");
  if (picture) one.style.backgroundImage = picture;
}

/** Label the preview's image link with the page's title. */
function nameEmbed(embed: HTMLElement): void {
  const picture = embed.querySelector<HTMLElement>("a.message_embed_image");
  const title = embed.querySelector(".message_embed_title")?.textContent?.trim();
  picture?.setAttribute("aria-label", title || picture.getAttribute("href") || "");
}

function dressSpoiler(block: HTMLElement): void {
  const header = block.querySelector<HTMLElement>(".spoiler-header");
  const content = block.querySelector<HTMLElement>(".spoiler-content");
  if (!header || !content) return;
  if (!header.textContent?.trim()) header.textContent = words.messages.spoiler;
  header.role = "button";
  header.tabIndex = 0;
  const show = (open: boolean) => {
    header.ariaExpanded = String(open);
    content.hidden = !open;
    content.ariaHidden = null;
  };
  show(false);
  header.addEventListener("click", (event) => {
    if (!(event.target as Element).closest("a")) show(content.hidden !== false);
  });
  pressable(header);
}

/** Make Enter and Space act like a click. */
function pressable(one: HTMLElement): void {
  one.addEventListener("keydown", (event) => {
    if (event.target !== one || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    event.stopPropagation();
    one.click();
  });
}

function dressTime(time: HTMLTimeElement, store: Store): void {
  const at = Date.parse(time.dateTime) / 1000;
  if (!Number.isFinite(at)) return;
  const hour24 = store.settings.twenty_four_hour_time;
  time.title = `${fullTime(at, words.language, hour24)} (${time.textContent ?? ""})`;
  time.textContent = shortTime(at, words.language, hour24);
}

function dressMention(mention: HTMLElement, store: Store): void {
  const silent = mention.classList.contains("silent");
  const userId = Number(mention.dataset["userId"]);
  const groupId = Number(mention.dataset["userGroupId"]);
  const isMine =
    userId === store.me ||
    mention.dataset["userId"] === "*" ||
    mention.classList.contains("topic-mention") ||
    (groupId > 0 && isMember(store.groups, groupId, store.me));
  if (isMine && !silent) mention.classList.add("mine");
  mention.dir = "auto";
  const user = store.users.get(userId);
  if (user) mention.textContent = (silent ? "" : "@") + user.full_name;
  if (!user && !store.groups.has(groupId)) return;
  mention.role = "button";
  mention.tabIndex = 0;
  mention.addEventListener("click", () => {
    if (user) overlays.user(userId, mention);
    else overlays.group(groupId, mention);
  });
  pressable(mention);
}

function dressLink(link: HTMLAnchorElement, origins: readonly string[]): void {
  const fragment = internalFragment(link.getAttribute("href") ?? "", origins);
  if (fragment !== null) {
    link.setAttribute("href", `#${fragment}`);
    link.classList.add("inside");
    return;
  }
  link.target = "_blank";
  link.rel = "noopener noreferrer";
}

const PICTURES = ".message_inline_image > a, img.inline-image";

function dressPictures(node: HTMLElement, store: Store, messageId: number): void {
  const all: LightboxMedia[] = [];
  for (const one of node.querySelectorAll<HTMLElement>(PICTURES)) {
    const image = one instanceof HTMLImageElement ? one : one.querySelector("img");
    const video = one.querySelector("video");
    const outside = one.parentElement?.matches(".youtube-video, .embed-video") ?? false;
    if (image) reserve(image);
    if (image) animate(image, one, String(store.settings["web_animate_image_previews"]));
    if (video) {
      video.controls = true;
      video.addEventListener("click", (event) => event.preventDefault());
      video.setAttribute("aria-label", one.title || words.messages.video);
    }
    if (!image) continue;
    const source =
      one instanceof HTMLAnchorElement
        ? (one.getAttribute("href") ?? image.src)
        : (image.dataset["originalSrc"] ?? image.src);
    const name = one.title || image.alt || pathIdOf(source).split("/").at(-1)!;
    if (!image.alt) image.alt = name || words.messages.picture;
    if (outside) continue;
    const at = all.length;
    all.push({ kind: "image", source, preview: image.src, name, messageId });
    if (one === image) {
      image.role = "button";
      image.tabIndex = 0;
      pressable(image);
    }
    one.addEventListener("click", (event) => {
      if (event instanceof MouseEvent && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
      event.preventDefault();
      overlays.open({ kind: "lightbox", all, at });
    });
  }
}

/** Animate images always, on hover, or never, by the user's setting. */
function animate(image: HTMLImageElement, around: HTMLElement, when: string): void {
  const moving = image.src;
  const still = moving.replace(/-anim(\.\w+)$/, "$1");
  if (still === moving || when === "always") return;
  image.src = still;
  if (when === "never") return;
  around.addEventListener("pointerenter", () => (image.src = moving));
  around.addEventListener("pointerleave", () => (image.src = still));
}

/** Reserve an image's space to avoid layout shifts. */
function reserve(image: HTMLImageElement): void {
  image.decoding = "async";
  const size = fitDimensions(
    image.dataset["originalDimensions"] ?? "",
    PICTURE.width,
    PICTURE.height,
  );
  if (!size) return;
  image.width = size.width;
  image.height = size.height;
  image.style.aspectRatio = `${size.width} / ${size.height}`;
}

function enhanceCode(block: HTMLElement, store: Store): void {
  const pre = block.querySelector("pre");
  const code = block.querySelector("code");
  if (!pre || !code) return;
  // Focusable, so that keys scroll long lines.
  pre.tabIndex = 0;
  const language = block.dataset["codeLanguage"];
  const bar = document.createElement("div");
  bar.className = "code-bar";
  if (language) {
    const name = document.createElement("span");
    name.textContent = language;
    bar.append(name);
    const source = code.textContent ?? "";
    for (const place of store.playgrounds) {
      if (place.pygments_language.toLowerCase() !== language.toLowerCase()) continue;
      const link = document.createElement("a");
      link.href = place.url_template.replace(
        /\{\??code\*?\}/,
        encodeURIComponent(source.trimEnd()),
      );
      link.textContent = words.messages.openWith({ place: place.name });
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      bar.append(link);
    }
  }
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words.messages.copy;
  button.addEventListener("click", () => {
    void messageActions.copy(code.textContent ?? "", words.messages.codeCopied);
  });
  bar.append(button);
  block.prepend(bar);
}
