/** What serves the organization, as the server tells its owners. */

import { ago } from "../settings/form/telling";
import { get } from "../wire/http";
import type { AllWords } from "../words/en";

export interface Node {
  name: string;
  state: string;
  version: string;
  lag_entries: number;
  lag_seconds: number;
  waiting_polls: number;
  started_at: number;
  seen_at: number;
}

export interface Backups {
  /** Null for none. */
  last_at: number | null;
  is_old: boolean;
}

export interface Serving {
  nodes: Node[];
  /** Null where the server makes none by itself; older servers do not say. */
  backups?: Backups | null;
}

export const serving = () => get<Serving>("/nodes");

/** A sentence about the server's own backups. */
export function aboutBackups(
  backups: Backups | null | undefined,
  say: AllWords["manage"]["nodes"],
): string {
  if (!backups) return backups === null ? say.noBackups : "";
  return backups.last_at === null ? say.backupMissing : say.backedUp(ago(backups.last_at));
}
