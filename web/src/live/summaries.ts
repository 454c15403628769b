/** Summaries of conversations, while a language model writes them. */

import type { Narrow } from "../data/conversations";
import { ApiError, NetworkError } from "../wire/http";
import { apiNarrow } from "./messages";
import type { Store } from "./store.svelte";

/** Call `show` with the HTML so far, repeatedly. Throws ApiError, NetworkError, and an AbortError
 * from `signal`. */
export async function streamSummary(
  store: Store,
  narrow: Narrow,
  show: (html: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const form = new URLSearchParams({ narrow: JSON.stringify(apiNarrow(narrow, store)) });
  const headers = { Accept: "text/event-stream" };
  let isDone = false;
  try {
    const init: RequestInit = { credentials: "same-origin", headers, signal };
    const response = await fetch(`/api/v1/messages/summary?${form}`, init);
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      throw refusal(response.status, (await response.json()) as Record<string, unknown>);
    }
    for await (const { kind, data } of eventsOf(response)) {
      if (kind === "summary") show(String(data["summary"]));
      if (kind === "error") throw refusal(503, data);
      isDone ||= kind === "done";
    }
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error;
    throw new NetworkError("Can’t reach the server.");
  }
  if (!isDone) throw new NetworkError("Can’t reach the server.");
}

function refusal(status: number, body: Record<string, unknown>): ApiError {
  return new ApiError(status, String(body["code"] ?? ""), String(body["msg"] ?? ""), body);
}

interface SentEvent {
  kind: string;
  data: Record<string, unknown>;
}

/** The events of a response, each with one line of data. */
export async function* eventsOf(response: Response): AsyncGenerator<SentEvent> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const part = await reader?.read();
    if (!part || part.done) return;
    const blocks = (rest + part.value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const kind = /^event: (.*)$/m.exec(block)?.[1] ?? "";
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data) yield { kind, data: JSON.parse(data) as Record<string, unknown> };
    }
  }
}
