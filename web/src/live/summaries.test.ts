import { expect, test } from "vitest";
import { eventsOf } from "./summaries";

test("events may be cut anywhere", async () => {
  const text =
    'event: summary\ndata: {"summary":"<p>é</p>"}\n\n: hello\n\nevent: done\ndata: {}\n\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 7, bytes.length]) {
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) {
          controller.enqueue(bytes.slice(at, at + size));
        }
        controller.close();
      },
    });
    const found = [];
    for await (const event of eventsOf(new Response(stream))) found.push(event);
    expect(found).toEqual([
      { kind: "summary", data: { summary: "<p>é</p>" } },
      { kind: "done", data: {} },
    ]);
  }
});
