/** Requests to `/api/v1`, authenticated by the session cookie. */

import { encoded, unsafeHeaders, type Parameters } from "./early";

export type { Parameters };

type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** An error response: code, message, and further fields. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: Record<string, unknown>,
  ) {
    super(message);
  }

  /** Seconds to wait before retrying. */
  get retryAfter(): number | undefined {
    const seconds = Number(this.fields["retry-after"]);
    return Number.isFinite(seconds) ? seconds : undefined;
  }
}

/** The network or the server isn't available. */
export class NetworkError extends Error {}

/** Whether retrying later may help. */
export function isTransient(error: unknown): boolean {
  return (
    error instanceof NetworkError ||
    (error instanceof ApiError && (error.status === 429 || error.status >= 500))
  );
}

/** Whether the session ended. A wrong password confirmation doesn't end it. */
export function isSignedOut(error: unknown): boolean {
  return (
    error instanceof ApiError && error.status === 401 && error.code !== "AUTHENTICATION_FAILED"
  );
}

/** A user-facing message for any error. */
export function errorMessage(error: unknown): string {
  return error instanceof Error && error.message ? error.message : String(error);
}

const POSITION = "Tertulia-Position";

/** Replication position of the newest response: nodes that are behind must not respond. */
let position = "";

function notePosition(received: string | null): void {
  if (!received) return;
  const [history, number] = received.split(".");
  const [known, before] = position.split(".");
  if (history !== known || Number(number) > Number(before)) position = received;
}

function positionHeaders(): Record<string, string> {
  return position ? { [POSITION]: position } : {};
}

/** Called when the session has ended. */
let signedOut: () => void = () => {};

export function onSignedOut(call: () => void): void {
  signedOut = call;
}

/** Called when the server requires the password; returns whether it was confirmed. */
let passwordWanted: (proofs: string[]) => Promise<boolean> = async () => false;

export function onPasswordRequired(call: (proofs: string[]) => Promise<boolean>): void {
  passwordWanted = call;
}

/** Limit of `keepalive` requests in bytes, less the overhead. */
const KEPT_ALIVE = 60_000;

/** Longest automatic wait when rate limited, in seconds. */
const MAX_RETRY_AFTER = 10;

/** Send a request. Strings are sent as they are, other values as JSON, and `undefined` is omitted.
 * Short rate limits are waited out. `begun`: the same request, already sent. Throws ApiError,
 * NetworkError, and an AbortError from `signal`. */
export async function request<Answer>(
  method: Method,
  path: string,
  parameters: Parameters = {},
  signal?: AbortSignal,
  begun?: Promise<Response>,
): Promise<Answer> {
  const form = encoded(parameters);
  const query = method === "GET" && form.size ? `?${form}` : "";
  const init: RequestInit = { method, credentials: "same-origin", signal: signal ?? null };
  init.headers = positionHeaders();
  if (method !== "GET") {
    init.headers = { ...init.headers, ...unsafeHeaders() };
    init.body = form;
    // Let short requests outlive the page.
    init.keepalive = document.visibilityState === "hidden" && String(form).length < KEPT_ALIVE;
  }
  const ask = () => {
    const first = begun;
    begun = undefined;
    return first ?? fetch(`/api/v1${path}${query}`, init);
  };
  return answered<Answer>(ask, signal);
}

/** Upload a file as a form. */
export async function sendFile<Answer>(
  path: string,
  file: Blob,
  name: string,
  parameters: Parameters = {},
): Promise<Answer> {
  const form = new FormData();
  for (const [key, value] of encoded(parameters)) form.set(key, value);
  form.set("file", file, name);
  return answered<Answer>(() =>
    fetch(`/api/v1${path}`, {
      method: "POST",
      credentials: "same-origin",
      headers: { ...positionHeaders(), ...unsafeHeaders() },
      body: form,
    }),
  );
}

async function answered<Answer>(
  ask: () => Promise<Response>,
  signal?: AbortSignal,
): Promise<Answer> {
  for (;;) {
    try {
      return await answeredAtOnce<Answer>(ask());
    } catch (error) {
      // A request refused for this reason had no effect.
      if (error instanceof ApiError && error.code === "PASSWORD_CONFIRMATION_REQUIRED") {
        const proofs = error.fields["proofs"];
        if (await passwordWanted(Array.isArray(proofs) ? proofs : ["password"])) continue;
        throw error;
      }
      const wait = error instanceof ApiError && error.status === 429 ? error.retryAfter : undefined;
      if (wait === undefined || wait > MAX_RETRY_AFTER) throw error;
      await pause(wait, signal);
    }
  }
}

function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const stop = () => {
      clearTimeout(timer);
      failed(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      done();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

async function answeredAtOnce<Answer>(pending: Promise<Response>): Promise<Answer> {
  let response: Response;
  let body: Record<string, unknown>;
  try {
    response = await pending;
    notePosition(response.headers.get(POSITION));
    body = (await response.json()) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new NetworkError("Can’t reach the server.");
  }
  if (body["result"] === "success") return body as Answer;
  const refused = new ApiError(
    response.status,
    String(body["code"] ?? ""),
    String(body["msg"] ?? response.statusText),
    body,
  );
  if (isSignedOut(refused)) signedOut();
  throw refused;
}

export const get = <Answer>(path: string, parameters?: Parameters, signal?: AbortSignal) =>
  request<Answer>("GET", path, parameters, signal);
export const post = <Answer = unknown>(
  path: string,
  parameters?: Parameters,
  begun?: Promise<Response>,
) => request<Answer>("POST", path, parameters, undefined, begun);
export const patch = <Answer = unknown>(path: string, parameters?: Parameters) =>
  request<Answer>("PATCH", path, parameters);
export const put = <Answer = unknown>(path: string, parameters?: Parameters) =>
  request<Answer>("PUT", path, parameters);
export const del = <Answer = unknown>(path: string, parameters?: Parameters) =>
  request<Answer>("DELETE", path, parameters);
