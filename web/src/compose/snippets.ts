import type { App } from "../app";
import { patch, post } from "../wire/http";
import type { Snippet } from "../wire/objects";
import { Composition } from "./composition.svelte";
import { isSavable } from "./saving";

/** A snippet being edited; new ones have no ID. */
export interface OpenSnippet {
  id: number | null;
  title: string;
  composition: Composition;
  /** The last saved text. */
  kept: string;
  saving?: Promise<unknown> | null;
}

export function openSnippet({
  id,
  title,
  content,
}: Omit<Snippet, "id" | "date_created"> & Pick<OpenSnippet, "id">): OpenSnippet {
  const composition = new Composition(content);
  return { id, title, composition, kept: textOf(title, composition) };
}

export function canBeSaved(store: App["store"], { title, composition }: OpenSnippet): boolean {
  return title.trim() !== "" && isSavable(store, composition);
}

/** Throws request errors. */
export async function save(snippet: OpenSnippet): Promise<void> {
  const { id, title, composition } = snippet;
  const kept = textOf(title, composition);
  const fields = { title: title.trim(), content: composition.content };
  snippet.saving =
    id === null ? post("/saved_snippets", fields) : patch(`/saved_snippets/${id}`, fields);
  try {
    await snippet.saving;
    snippet.kept = kept;
  } finally {
    snippet.saving = null;
  }
}

export function isUnsaved({ title, composition, kept }: OpenSnippet): boolean {
  return textOf(title, composition) !== kept;
}

function textOf(title: string, { content }: Composition): string {
  return JSON.stringify([title, content]);
}
