/** Server information for owners. */

import { ago } from "../words/times";
import { get, post } from "../wire/http";
import type { AllWords } from "../words/parts";

export interface ServerNode {
  name: string;
  state: string;
  version: string;
  lag_entries: number;
  lag_seconds: number;
  waiting_polls: number;
  started_at: number;
  seen_at: number;
  /** Newest first; older servers don't return it. */
  slow_requests?: SlowRequest[];
}

export interface SlowRequest {
  at: number;
  method: string;
  route: string;
  user_id: number | null;
  status: number;
  milliseconds: number;
  database_milliseconds: number;
  loop_milliseconds: number;
}

export interface Backups {
  /** Null if there isn't any. */
  last_at: number | null;
  is_old: boolean;
}

export interface ServerInfo {
  nodes: ServerNode[];
  /** Null if automatic backups are off; older servers don't return it. */
  backups?: Backups | null;
  /** Empty if not configured; older servers don't return it. */
  external_url?: string;
}

export const loadServerInfo = () => get<ServerInfo>("/nodes");

export interface TestEmailResult {
  outcome: "sent" | "not_set_up" | "unreachable" | "not_encrypted" | "not_signed_in" | "refused";
  to: string;
  /** The mail server's response if it refused the email; otherwise empty. */
  reply: string;
}

/** Send a test email to the user's own address. For owners. */
export const sendTestEmail = () => post<TestEmailResult>("/mails/test");

/** Slow requests of all nodes, newest first. */
export function slowRequests(
  nodes: readonly ServerNode[],
): (SlowRequest & { node: string; key: string })[] {
  return nodes
    .flatMap(({ name, slow_requests: slow = [] }) =>
      slow.map((request, place) => ({
        ...request,
        node: name,
        key: `${name} ${slow.length - place} ${request.at}`,
      })),
    )
    .sort((a, b) => b.at - a.at);
}

/** A sentence about the server's backups. */
export function backupSummary(
  backups: Backups | null | undefined,
  texts: AllWords["manage"]["nodes"],
): string {
  if (!backups) return backups === null ? texts.noBackups : "";
  return backups.last_at === null
    ? texts.backupMissing
    : texts.backedUp({ ago: ago(backups.last_at) });
}
