/** The HTML that the server makes of messages, before it is shown. Pure: text to text. */

import { characters } from "./emoji";

const TAG = /<[a-z][^<>]*>/g;
const PLAIN_EMOJI =
  /(?=[^\x00-\x7f])\p{Emoji}[\ufe0f\p{Emoji_Modifier}]*(?:\u200d(?=[^\x00-\x7f])\p{Emoji}[\ufe0f\p{Emoji_Modifier}]*)*/gu;
/** As many emoji as are shown large where there is nothing else. */
const MOST_LARGE = 4;
const UNICODE = /(<span [^<>]*class="emoji emoji-([0-9a-f-]+)"[^<>]*>)[^<]*(<\/span>)/g;

const FILM = /(<video [^<>]*src="[^"#]*)(?=")/g;

/**
 * Styles in attributes are not let through by the page's policy: they are kept aside for code to
 * apply. Emoji become characters. A film shows its first picture, also where browsers load none
 * before it is played unless they are asked for a moment of it.
 */
export function prepared(html: string): string {
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

/** Whether it is nothing but a few emoji: these are shown large. */
export function isOnlyEmoji(html: string): boolean {
  const inner = /^<p>([\s\S]*)<\/p>$/.exec(html)?.[1];
  if (!inner) return false;
  const signs = inner.match(
    /<span [^<>]*class="emoji [^<>]*>[^<]*<\/span>|<img [^<>]*class="emoji"[^<>]*>/g,
  );
  // Taking each of thousands out of a long text would take seconds.
  if (signs && signs.length > MOST_LARGE) return false;
  const rest = (signs ?? []).reduce((text, sign) => text.replace(sign, " "), inner);
  // Those without a name, as with skin tones, are characters.
  const plain = rest.match(PLAIN_EMOJI) ?? [];
  const count = (signs?.length ?? 0) + plain.length;
  return count > 0 && count <= MOST_LARGE && rest.replace(PLAIN_EMOJI, "").trim() === "";
}

/** Its words alone, as for a notice: without tags, on one line. */
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

/** What a channel is about, in its words alone: what is only marked stays within its line. */
export function aboutOf(channel: { rendered_description: string }): string {
  return plainText(
    channel.rendered_description.replace(/<\/?(?:a|code|del|em|span|strong)\b[^<>]*>/g, ""),
  );
}

/** The part of a `/me` message after it. */
export function withoutMe(html: string): string {
  return html.replace(/^<p>\/me /, "<p>");
}

/** The one property that the server's own styles set, by name. */
export function styled(text: string, property: string): string | undefined {
  for (const one of text.split(";")) {
    const colon = one.indexOf(":");
    if (one.slice(0, colon).trim() === property) return one.slice(colon + 1).trim();
  }
  return undefined;
}

/** "840x560" to what fits into a box, without making small ones large. */
export function fitted(
  dimensions: string,
  width: number,
  height: number,
): { width: number; height: number } | null {
  const found = /^(\d+)x(\d+)$/.exec(dimensions);
  const [w, h] = [Number(found?.[1]), Number(found?.[2])];
  if (!w || !h) return null;
  const scale = Math.min(1, width / w, height / h);
  return { width: Math.max(1, Math.round(w * scale)), height: Math.max(1, Math.round(h * scale)) };
}

/** The fragment of a link into this organization, however it is written; null for any other. */
export function ownFragment(href: string, own: readonly string[]): string | null {
  if (href.startsWith("#")) return href.slice(1);
  const hash = href.indexOf("#");
  if (hash < 0) return null;
  const page = href.slice(0, hash);
  const isOwn =
    page === "/" ||
    page === "/app/" ||
    own.some((origin) => page === origin || page === `${origin}/` || page === `${origin}/app/`);
  return isOwn ? href.slice(hash + 1) : null;
}
