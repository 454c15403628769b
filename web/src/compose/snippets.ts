/** Snippets: texts that one writes often. */

import type { App } from "../app";
import { patch, post } from "../wire/http";
import type { Snippet } from "../wire/objects";
import { Composition } from "./composition.svelte";
import { isSavable } from "./saving";

/** One that is written: a new one has no ID. */
export interface OpenSnippet {
  id: number | null;
  title: string;
  composition: Composition;
}

export function opened({
  id,
  title,
  content,
}: Omit<Snippet, "id" | "date_created"> & Pick<OpenSnippet, "id">): OpenSnippet {
  return { id, title, composition: new Composition(content) };
}

export function canBeSaved(store: App["store"], { title, composition }: OpenSnippet): boolean {
  return title.trim() !== "" && isSavable(store, composition);
}

export function save({ id, title, composition }: OpenSnippet): Promise<unknown> {
  const what = { title: title.trim(), content: composition.content };
  return id === null ? post("/saved_snippets", what) : patch(`/saved_snippets/${id}`, what);
}
