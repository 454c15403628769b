/** What the server knows of uploaded files: asked for together, and kept. */

import { get } from "../wire/http";

export interface FileFacts {
  path_id: string;
  name: string;
  /** Bytes. */
  size: number;
  media_type: string;
  /** Whether the browser shows it by itself. */
  opens: boolean;
}

type Answer = (facts: FileFacts | null) => void;

/** The server tells of so many at once. */
const TOGETHER = 50;
/** So many are kept, those that were asked for last. */
const KEPT = 500;
/** How long others are waited for, to be asked for together, in ms. */
const GATHERING = 30;

const known = new Map<string, Promise<FileFacts | null>>();
let wanted = new Map<string, Answer>();

/** What a file is, by its `path_id`; null for one that is gone, or that one may not open. */
export function factsOf(path: string): Promise<FileFacts | null> {
  const before = known.get(path);
  if (before) return before;
  const found = new Promise<FileFacts | null>((resolve) => {
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
  let files: FileFacts[] = [];
  const path_ids = some.map(([path]) => path);
  try {
    ({ files } = await get<{ files: FileFacts[] }>("/attachments/facts", { path_ids }));
  } catch {
    // The card says less; the next one that is made asks again.
  }
  const found = new Map(files.map((one) => [one.path_id, one]));
  for (const [path, answer] of some) {
    const facts = found.get(path) ?? null;
    // It may be linked, or be reached, later.
    if (!facts) known.delete(path);
    answer(facts);
  }
}
