import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { get, post, ApiError } from "./http";

interface FakeResponse {
  status: number;
  position?: string;
  body: Record<string, unknown>;
}

const DONE: FakeResponse = { status: 200, body: { result: "success", msg: "", id: 7 } };

function tooMany(seconds: number): FakeResponse {
  const body = { result: "error", msg: "Too many.", code: "RATE_LIMIT_HIT" };
  return { status: 429, body: { ...body, "retry-after": seconds } };
}

/** The position header of each request. */
const seen: unknown[] = [];

/** A fake server with queued responses. Returns the requests. */
function server(...responses: FakeResponse[]): string[] {
  const requests: string[] = [];
  seen.length = 0;
  const answers = vi.fn((address: string, init: RequestInit) => {
    requests.push(`${init.method} ${address} ${init.body ?? ""}`.trim());
    seen.push((init.headers as Record<string, string>)["Tertulia-Position"]);
    const { status, body, position } = responses.shift()!;
    const headers: HeadersInit = position ? { "Tertulia-Position": position } : {};
    return Promise.resolve(new Response(JSON.stringify(body), { status, headers }));
  });
  vi.stubGlobal("fetch", answers);
  return requests;
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { cookie: "" });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("retries a rate-limited request after the given time", async () => {
  const requests = server(tooMany(2.5), tooMany(0.5), DONE);
  const answer = post("/messages", { content: "a" });
  await vi.advanceTimersByTimeAsync(2400);
  expect(requests).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(100);
  expect(requests).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(500);
  expect((await answer) as unknown).toEqual(DONE.body);
  expect(requests).toEqual(Array(3).fill("POST /api/v1/messages content=a"));
});

test("reports a long wait", async () => {
  const requests = server(tooMany(60));
  const error = await post("/messages").catch((refused: unknown) => refused);
  expect(error).toBeInstanceOf(ApiError);
  expect((error as ApiError).retryAfter).toBe(60);
  expect(requests).toHaveLength(1);
});

test("stops retrying when aborted", async () => {
  const requests = server(tooMany(5));
  const controller = new AbortController();
  const answer = get("/messages", {}, controller.signal).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(1000);
  controller.abort();
  expect(await answer).toMatchObject({ name: "AbortError" });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(requests).toHaveLength(1);
});

test("reports other errors immediately", async () => {
  const requests = server({
    status: 400,
    body: { result: "error", msg: "No.", code: "BAD_REQUEST" },
  });
  await expect(get("/messages")).rejects.toMatchObject({ status: 400, code: "BAD_REQUEST" });
  expect(requests).toHaveLength(1);
});

test("passes the newest position to the next node", async () => {
  const at = (position?: string): FakeResponse => ({ ...DONE, ...(position && { position }) });
  server(at(), at("aa.99"), at("aa.100"), at("aa.99"), at(), at("bb.3"), at());
  for (let number = 0; number < 4; number++) await get("/messages");
  await post("/messages");
  await get("/messages");
  await get("/messages");
  expect(seen).toEqual([undefined, undefined, "aa.99", "aa.100", "aa.100", "aa.100", "bb.3"]);
});
