import type { GifProvider } from "./providers";

export interface Gif {
  id: string;
  /** Alternative text. */
  title: string;
  /** The URL that is sent. */
  url: string;
  /** A small version with its size in pixels. */
  preview: string;
  width: number;
  height: number;
}

const COUNT = "30";
const GIPHY_RATINGS: Record<number, string> = { 2: "g", 3: "pg", 4: "pg-13", 5: "r" };
const KLIPY_FILTERS: Record<number, string> = { 2: "high", 3: "medium", 4: "low", 5: "off" };

/** The search URL; trending GIFs if the query is empty. */
export function gifAddress(provider: GifProvider, text: string, language: string): string {
  const words = text.trim().slice(0, 50);
  const { key, rating } = provider;
  const query = new URLSearchParams();
  if (provider.name === "GIPHY") {
    query.set("api_key", key);
    query.set("rating", GIPHY_RATINGS[rating] ?? "g");
    query.set("bundle", "messaging_non_clips");
    if (words) query.set("lang", language);
  } else {
    query.set("key", key);
    query.set("contentfilter", KLIPY_FILTERS[rating] ?? "high");
    query.set("media_filter", "gif,tinygif");
    query.set("locale", language);
  }
  query.set("limit", COUNT);
  if (words) query.set("q", words);
  const base =
    provider.name === "GIPHY" ? "https://api.giphy.com/v1/gifs" : "https://api.klipy.com/v2";
  const rest = provider.name === "GIPHY" ? "trending" : "featured";
  return `${base}/${words ? "search" : rest}?${query.toString()}`;
}

interface GiphyImage {
  url?: string;
  width?: string;
  height?: string;
}
interface Answer {
  data?: { id?: unknown; title?: unknown; images?: Record<string, GiphyImage | undefined> }[];
  results?: {
    id?: unknown;
    content_description?: unknown;
    media_formats?: Record<string, { url?: string; dims?: number[] } | undefined>;
  }[];
}

/** Parse a provider's response, skipping malformed entries. */
export function gifsIn(provider: GifProvider, answer: unknown): Gif[] {
  const { data, results } = (answer ?? {}) as Answer;
  const gifs =
    provider.name === "GIPHY"
      ? (data ?? []).map(({ id, title, images }) => {
          const preview = images?.["fixed_width"] ?? images?.["fixed_width_small"];
          const whole = images?.["downsized"] ?? images?.["original"] ?? preview;
          return gif(id, title, whole?.url, preview?.url, [preview?.width, preview?.height]);
        })
      : (results ?? []).map(({ id, content_description: title, media_formats: formats }) => {
          const small = formats?.["tinygif"] ?? formats?.["gif"];
          return gif(id, title, formats?.["gif"]?.url, small?.url, small?.dims ?? []);
        });
  // Remove duplicates.
  return [...new Map(gifs.flatMap((gif) => (gif ? [[gif.id, gif]] : []))).values()];
}

function gif(
  id: unknown,
  title: unknown,
  url: string | undefined,
  preview: string | undefined,
  [width, height]: readonly (string | number | undefined)[],
): Gif | null {
  if (!url?.startsWith("https://") || !preview?.startsWith("https://")) return null;
  return {
    id: String(id),
    title: typeof title === "string" ? title : "",
    url,
    preview,
    width: Number(width) || 1,
    height: Number(height) || 1,
  };
}

/** Characters with a meaning in link text, such as mentions. */
const SIGNS = /[\\[\]\s*_~`@#$:<>|]+/g;

/** The Markdown that shows the GIF. */
export function gifLink(gif: Gif): string {
  const title = gif.title.replace(SIGNS, " ").trim() || "GIF";
  const url = gif.url.replace(/\(/g, "%28").replace(/\)/g, "%29").replace(/\s/g, "%20");
  return `[${title}](${url})`;
}
