/** Requests that the page sends before the client's script has arrived. The client continues them
 * (`opening/opening.ts`). */

import type { Term } from "../data/conversations";
import type { WireMessage } from "./objects";

export type Parameters = Record<string, unknown>;

export function encoded(parameters: Parameters): URLSearchParams {
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
export function unsafeHeaders(): Record<string, string> {
  return { "X-CSRF-Token": csrfToken() };
}

/** Parameters of `POST /register`. Organizations with more users send only those needed at first
 * (`live/users.ts`). */
export const REGISTER: Parameters = {
  apply_markdown: true,
  slim_presence: true,
  most_users: 1000,
  client_capabilities: {
    notification_settings_null: true,
    bulk_message_deletion: true,
    user_avatar_url_field_optional: true,
    stream_typing_notifications: true,
    user_settings_object: true,
    linkifier_url_template: true,
    user_list_incomplete: true,
    include_deactivated_groups: true,
    archived_channels: true,
    empty_topic_name: true,
    simplified_presence_events: true,
    individual_emoji_changes: true,
    server_extensions: true,
  },
};

export type Anchor = number | "newest" | "oldest" | "first_unread";

/** Messages to load before and after the anchor at first. Fewer than later, because on a slow
 * network the first words would wait for the last ones. */
export const FIRST_PAGE = 20;

export interface MessagesResponse {
  messages: WireMessage[];
  anchor: number;
  found_newest: boolean;
  found_oldest: boolean;
  found_anchor: boolean;
  history_limited: boolean;
}

/** Parameters of `GET /messages`. */
export function messagesQuery(
  narrow: Term[],
  anchor: Anchor,
  before: number,
  after: number,
): Parameters {
  return {
    anchor: String(anchor),
    num_before: before,
    num_after: after,
    narrow,
    client_gravatar: true,
    apply_markdown: true,
    allow_empty_topic_name: true,
  };
}

/** Messages of the conversation that the page opens. Null if the server refused. */
export interface EarlyMessages {
  narrow: Term[];
  anchor: Anchor;
  answer: Promise<MessagesResponse | null>;
}

let registering: Promise<Response> | undefined;
let messages: EarlyMessages | undefined;

/** Send the first requests: register, and with a session and a conversation, its messages. These
 * are asked for once the queue exists, so that it has every change since. */
export function beginEarly(place: { narrow: Term[]; near?: number } | null): void {
  const how: RequestInit = { credentials: "same-origin" };
  registering = fetch("/api/v1/register", {
    ...how,
    method: "POST",
    headers: unsafeHeaders(),
    body: encoded(REGISTER),
  });
  // The client reports it.
  registering.catch(() => undefined);
  if (!place || !csrfToken()) return;
  const narrow = place.narrow.map((term) => ({ ...term, negated: false }));
  const anchor = place.near ?? "first_unread";
  const query = encoded(messagesQuery(narrow, anchor, FIRST_PAGE, FIRST_PAGE));
  const ask = async () => {
    if (!(await registering)?.ok) return null;
    const response = await fetch(`/api/v1/messages?${query}`, how);
    return response.ok ? ((await response.json()) as MessagesResponse) : null;
  };
  messages = { narrow: place.narrow, anchor, answer: ask().catch(() => null) };
}

export function earlyMessages(): EarlyMessages | undefined {
  return messages;
}

/** The pending or finished registration, once. */
export function takeEarlyRegistration(): Promise<Response> | undefined {
  const taken = registering;
  registering = undefined;
  return taken;
}

/** The messages, once. */
export function takeEarlyMessages(): EarlyMessages | undefined {
  const taken = messages;
  messages = undefined;
  return taken;
}
