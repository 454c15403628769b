/** Metadata of uploaded files, loaded in batches and cached. */

import { get } from "../wire/http";

export interface FileMetadata {
  path_id: string;
  name: string;
  size: number;
  media_type: string;
  /** Whether the browser can display it. */
  opens: boolean;
}

type Answer = (facts: FileMetadata | null) => void;

/** The server's limit per request. */
const TOGETHER = 50;
/** Size of the LRU cache. */
const KEPT = 500;
/** How long requests are collected, in ms. */
const GATHERING = 30;

const known = new Map<string, Promise<FileMetadata | null>>();
let wanted = new Map<string, Answer>();

/** Metadata by `path_id`; null if the file was deleted or isn't accessible. */
export function fileMetadata(path: string): Promise<FileMetadata | null> {
  const before = known.get(path);
  if (before) return before;
  const found = new Promise<FileMetadata | null>((resolve) => {
    if (!wanted.size) setTimeout(ask, GATHERING);
    wanted.set(path, resolve);
  });
  known.set(path, found);
  const [oldest] = known.keys();
  if (known.size > KEPT && oldest !== undefined) known.delete(oldest);
  return found;
}

function ask(): void {
  const all = [...wanted];
  wanted = new Map();
  for (let at = 0; at < all.length; at += TOGETHER) void askFor(all.slice(at, at + TOGETHER));
}

async function askFor(some: readonly (readonly [string, Answer])[]): Promise<void> {
  let files: FileMetadata[] = [];
  const path_ids = some.map(([path]) => path);
  try {
    ({ files } = await get<{ files: FileMetadata[] }>("/attachments/facts", { path_ids }));
  } catch {
    // Best effort: the next card tries again.
  }
  const found = new Map(files.map((one) => [one.path_id, one]));
  for (const [path, answer] of some) {
    const facts = found.get(path) ?? null;
    // It may become accessible later.
    if (!facts) known.delete(path);
    answer(facts);
  }
}
