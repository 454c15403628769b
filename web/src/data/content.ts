/** Prepares the server's HTML of messages for display. Text to text, without a DOM. */

import { characters } from "./emojiCharacters";

const TAG = /<[a-z][^<>]*>/g;
const PLAIN_EMOJI =
  /(?=[^\x00-\x7f])\p{Emoji}[\ufe0f\p{Emoji_Modifier}]*(?:\u200d(?=[^\x00-\x7f])\p{Emoji}[\ufe0f\p{Emoji_Modifier}]*)*/gu;
/** Messages of at most this many emoji show them large. */
const MOST_LARGE = 4;
const UNICODE = /(<span [^<>]*class="emoji emoji-([0-9a-f-]+)"[^<>]*>)[^<]*(<\/span>)/g;

const FILM = /(<video [^<>]*src="[^"#]*)(?=")/g;

/** Move style attributes aside, as the page's policy blocks them; code applies them later. Turn
 * emoji into characters, and make videos show their first frame. */
export function prepareHtml(html: string): string {
  return html
    .replace(FILM, "$1#t=0.001")
    .replace(TAG, (tag) =>
      tag.includes(" style=") ? tag.replace(/ style="/g, ' data-style="') : tag,
    )
    .replace(
      UNICODE,
      (_, open: string, code: string, close: string) => open + characters(code) + close,
    );
}

/** Whether the message is only a few emoji, which are shown large. */
export function isOnlyEmoji(html: string): boolean {
  const inner = /^<p>([\s\S]*)<\/p>$/.exec(html)?.[1];
  if (!inner) return false;
  const signs = inner.match(
    /<span [^<>]*class="emoji [^<>]*>[^<]*<\/span>|<img [^<>]*class="emoji"[^<>]*>/g,
  );
  // Avoids quadratic work on long texts.
  if (signs && signs.length > MOST_LARGE) return false;
  const rest = (signs ?? []).reduce((text, sign) => text.replace(sign, " "), inner);
  // Emoji without a name, such as those with skin tones, are characters.
  const plain = rest.match(PLAIN_EMOJI) ?? [];
  const count = (signs?.length ?? 0) + plain.length;
  return count > 0 && count <= MOST_LARGE && rest.replace(PLAIN_EMOJI, "").trim() === "";
}

/** The text without tags, on one line. */
export function plainText(html: string): string {
  return html
    .replace(/<[^<>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .trim();
}

/** A channel's description as plain text on one line. */
export function descriptionText(channel: { rendered_description: string }): string {
  return plainText(
    channel.rendered_description.replace(/<\/?(?:a|code|del|em|span|strong)\b[^<>]*>/g, ""),
  );
}

/** The part of a `/me` message after it. */
export function withoutMe(html: string): string {
  return html.replace(/^<p>\/me /, "<p>");
}

/** A property in the server's style attribute. */
export function styleProperty(text: string, property: string): string | undefined {
  for (const declaration of text.split(";")) {
    const colon = declaration.indexOf(":");
    if (declaration.slice(0, colon).trim() === property) return declaration.slice(colon + 1).trim();
  }
  return undefined;
}

/** Fit dimensions such as "840x560" into a box without enlarging them. */
export function fitDimensions(
  dimensions: string,
  width: number,
  height: number,
): { width: number; height: number } | null {
  const match = /^(\d+)x(\d+)$/.exec(dimensions);
  const [w, h] = [Number(match?.[1]), Number(match?.[2])];
  if (!w || !h) return null;
  const scale = Math.min(1, width / w, height / h);
  return { width: Math.max(1, Math.round(w * scale)), height: Math.max(1, Math.round(h * scale)) };
}

/** The fragment of a link into this organization; null for any other link. */
export function internalFragment(href: string, origins: readonly string[]): string | null {
  if (href.startsWith("#")) return href.slice(1);
  const hash = href.indexOf("#");
  if (hash < 0) return null;
  const page = href.slice(0, hash);
  const isOwn =
    page === "/" ||
    page === "/app/" ||
    origins.some((origin) => page === origin || page === `${origin}/` || page === `${origin}/app/`);
  return isOwn ? href.slice(hash + 1) : null;
}
