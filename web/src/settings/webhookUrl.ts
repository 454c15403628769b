/** The URL of a bot's incoming webhook. */

export interface Integration {
  name: string;
  display_name: string;
  all_event_types: string[] | null;
  url_options: { key: string; label: string; input_type: string }[];
  is_signed: boolean;
  takes_templates: boolean;
}

export interface Destination {
  /** The bot's owner, a channel, or a person. */
  kind: "owner" | "channel" | "person";
  id: number | undefined;
  /** Empty: chosen by the integration. */
  topic: string;
}

export interface WebhookOptions {
  /** Kinds of events; empty for all. */
  events: readonly string[];
  /** Empty for all. */
  branches: string;
}

export function webhookUrl(
  site: string,
  key: string,
  integration: Integration,
  to: Destination,
  wanted: WebhookOptions,
): string {
  const parameters: [string, string][] = [["api_key", key]];
  if (to.kind === "channel" && to.id !== undefined) {
    parameters.push(["stream", String(to.id)]);
    if (to.topic.trim()) parameters.push(["topic", to.topic.trim()]);
  }
  if (to.kind === "person" && to.id !== undefined) parameters.push(["to", String(to.id)]);
  const known = integration.all_event_types ?? [];
  const events = known.filter((event) => wanted.events.includes(event));
  if (events.length > 0 && events.length < known.length) {
    parameters.push(["only_events", JSON.stringify(events)]);
  }
  const takesBranches = integration.url_options.some((option) => option.key === "branches");
  if (takesBranches && wanted.branches.trim()) {
    parameters.push(["branches", wanted.branches.trim()]);
  }
  const query = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return `${site.replace(/\/+$/, "")}/api/v1/external/${integration.name}?${query}`;
}
