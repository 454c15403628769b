/** Requests to `/api/v1`, authenticated by the session cookie. */

export type Parameters = Record<string, unknown>;
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

function encoded(parameters: Parameters): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    form.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return form;
}

/** The CSRF token, which scripts of other origins can't read. */
export function csrfToken(): string {
  // With HTTPS, the cookie has a prefix; one without it is outdated.
  for (const name of ["__Host-tertulia_csrf", "tertulia_csrf"]) {
    const found = document.cookie.match(new RegExp(`(?:^|;\\s*)${name}=([^;]*)`));
    if (found?.[1]) return decodeURIComponent(found[1]);
  }
  return "";
}

/** Headers of unsafe requests. */
function unsafeHeaders(): Record<string, string> {
  return { "X-CSRF-Token": csrfToken() };
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
const PATIENCE = 10;

/** Send a request. Strings are sent as they are, other values as JSON, and `undefined` is omitted.
 * Short rate limits are waited out. Throws Refused, Unreachable, and an AbortError from
 * `signal`. */
export async function request<Answer>(
  method: Method,
  path: string,
  parameters: Parameters = {},
  signal?: AbortSignal,
): Promise<Answer> {
  const form = encoded(parameters);
  const query = method === "GET" && form.size ? `?${form}` : "";
  const how: RequestInit = { method, credentials: "same-origin", signal: signal ?? null };
  how.headers = positionHeaders();
  if (method !== "GET") {
    how.headers = { ...how.headers, ...unsafeHeaders() };
    how.body = form;
    // Let short requests outlive the page.
    how.keepalive = document.visibilityState === "hidden" && String(form).length < KEPT_ALIVE;
  }
  return answered<Answer>(() => fetch(`/api/v1${path}${query}`, how), signal);
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
      if (wait === undefined || wait > PATIENCE) throw error;
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
export const post = <Answer = unknown>(path: string, parameters?: Parameters) =>
  request<Answer>("POST", path, parameters);
export const patch = <Answer = unknown>(path: string, parameters?: Parameters) =>
  request<Answer>("PATCH", path, parameters);
export const put = <Answer = unknown>(path: string, parameters?: Parameters) =>
  request<Answer>("PUT", path, parameters);
export const del = <Answer = unknown>(path: string, parameters?: Parameters) =>
  request<Answer>("DELETE", path, parameters);
