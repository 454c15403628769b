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
const BATCH_SIZE = 50;
/** Size of the LRU cache. */
const CACHE_SIZE = 500;
/** How long requests are collected, in ms. */
const BATCH_DELAY = 30;

const known = new Map<string, Promise<FileMetadata | null>>();
let queued = new Map<string, Answer>();

/** Metadata by `path_id`; null if the file was deleted or isn't accessible. */
export function fileMetadata(path: string): Promise<FileMetadata | null> {
  const before = known.get(path);
  if (before) return before;
  const metadata = new Promise<FileMetadata | null>((resolve) => {
    if (!queued.size) setTimeout(ask, BATCH_DELAY);
    queued.set(path, resolve);
  });
  known.set(path, metadata);
  const [oldest] = known.keys();
  if (known.size > CACHE_SIZE && oldest !== undefined) known.delete(oldest);
  return metadata;
}

function ask(): void {
  const all = [...queued];
  queued = new Map();
  for (let at = 0; at < all.length; at += BATCH_SIZE) void askFor(all.slice(at, at + BATCH_SIZE));
}

async function askFor(some: readonly (readonly [string, Answer])[]): Promise<void> {
  let files: FileMetadata[] = [];
  const path_ids = some.map(([path]) => path);
  try {
    ({ files } = await get<{ files: FileMetadata[] }>("/attachments/facts", { path_ids }));
  } catch {
    // Best effort: the next card tries again.
  }
  const metadata = new Map(files.map((file) => [file.path_id, file]));
  for (const [path, answer] of some) {
    const facts = metadata.get(path) ?? null;
    // It may become accessible later.
    if (!facts) known.delete(path);
    answer(facts);
  }
}
