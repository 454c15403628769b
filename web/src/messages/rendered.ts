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
    marker: string,
    selector: string,
    call: (element: E) => void,
  ) => {
    if (html.includes(marker)) node.querySelectorAll<E>(selector).forEach(call);
  };
  // Remove KaTeX's HTML fallback for MathML.
  each("katex-html", ".katex-html", (element) => element.remove());
  each(" style=", "[data-style]", restyle);
  each("message_embed", ".message_embed", nameEmbed);
  each("codehilite", ".codehilite", (element) => enhanceCode(element, store));
  each("spoiler-block", ".spoiler-block", enhanceSpoiler);
  each<HTMLTimeElement>("<time", "time", (element) => enhanceTime(element, store));
  const mentions = ".user-mention, .user-group-mention, .topic-mention";
  each("-mention", mentions, (element) => enhanceMention(element, store));
  const origins = [window.location.origin, String(store.realm["realm_url"] ?? "")];
  each<HTMLAnchorElement>("href=", "a[href]", (element) => enhanceLink(element, origins));
  if (html.includes("image")) enhancePictures(node, store, messageId);
  if (html.includes("/user_uploads/")) makeFileCards(node);
  each("<table", "table", frameTable);
  // Quotes and lists have their own direction.
  each("<blockquote", "blockquote", (element) => (element.dir = "auto"));
  each("<li", "ul, ol", (element) => (element.dir = "auto"));
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
function restyle(element: HTMLElement): void {
  const style = element.dataset["style"] ?? "";
  const align = styleProperty(style, "text-align");
  if (align)
    element.style.textAlign = align === "left" ? "start" : align === "right" ? "end" : align;
  const picture = styleProperty(style, "background-image");
  if (picture) element.style.backgroundImage = picture;
}

/** Label the preview's image link with the page's title. */
function nameEmbed(embed: HTMLElement): void {
  const picture = embed.querySelector<HTMLElement>("a.message_embed_image");
  const title = embed.querySelector(".message_embed_title")?.textContent?.trim();
  picture?.setAttribute("aria-label", title || picture.getAttribute("href") || "");
}

function enhanceSpoiler(block: HTMLElement): void {
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
function pressable(element: HTMLElement): void {
  element.addEventListener("keydown", (event) => {
    if (event.target !== element || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    event.stopPropagation();
    element.click();
  });
}

function enhanceTime(time: HTMLTimeElement, store: Store): void {
  const at = Date.parse(time.dateTime) / 1000;
  if (!Number.isFinite(at)) return;
  const hour24 = store.settings.twenty_four_hour_time;
  time.title = `${fullTime(at, words.language, hour24)} (${time.textContent ?? ""})`;
  time.textContent = shortTime(at, words.language, hour24);
}

function enhanceMention(mention: HTMLElement, store: Store): void {
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

function enhanceLink(link: HTMLAnchorElement, origins: readonly string[]): void {
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

function enhancePictures(node: HTMLElement, store: Store, messageId: number): void {
  const all: LightboxMedia[] = [];
  for (const picture of node.querySelectorAll<HTMLElement>(PICTURES)) {
    const image = picture instanceof HTMLImageElement ? picture : picture.querySelector("img");
    const video = picture.querySelector("video");
    const outside = picture.parentElement?.matches(".youtube-video, .embed-video") ?? false;
    if (image) reserve(image);
    if (image) animate(image, picture, String(store.settings["web_animate_image_previews"]));
    if (video) {
      video.controls = true;
      video.addEventListener("click", (event) => event.preventDefault());
      video.setAttribute("aria-label", picture.title || words.messages.video);
    }
    if (!image) continue;
    const source =
      picture instanceof HTMLAnchorElement
        ? (picture.getAttribute("href") ?? image.src)
        : (image.dataset["originalSrc"] ?? image.src);
    const name = picture.title || image.alt || pathIdOf(source).split("/").at(-1)!;
    if (!image.alt) image.alt = name || words.messages.picture;
    if (outside) continue;
    const at = all.length;
    all.push({ kind: "image", source, preview: image.src, name, messageId });
    if (picture === image) {
      image.role = "button";
      image.tabIndex = 0;
      pressable(image);
    }
    picture.addEventListener("click", (event) => {
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
