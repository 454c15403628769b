/** Records of the audit log, as the page shows them. */

import type { UserGroup } from "../wire/objects";

export interface AuditRecord {
  id: number;
  timestamp: number;
  kind: string;
  actor_id: number | null;
  user_id: number | null;
  origin: {
    way: "session" | "api_key" | "access_key" | "page" | "directory" | "command_line" | "server";
    address: string;
    agent: string;
    session_id: number | null;
    key_id: number | null;
    command: string;
  };
  details: {
    changes?: Record<string, [unknown, unknown]>;
    user_ids?: number[];
    addresses?: string[];
    count?: number;
    channel?: string;
    group?: string;
    name?: string;
    method?: string;
    domain?: string;
    message_ids?: number[];
  } & Record<string, unknown>;
}

/** What the values of settings are called. */
export interface ValueNames {
  on: string;
  off: string;
  groups: ReadonlyMap<number, UserGroup>;
  groupName: (group: UserGroup) => string;
  roles: Record<string, string>;
  userName: (id: number) => string;
}

const MAX_SHOWN = 60;

/** The value of a setting as text. */
export function valueText(setting: string, value: unknown, names: ValueNames): string {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "boolean") return value ? names.on : names.off;
  if (setting === "role") return names.roles[String(value)] ?? String(value);
  if (/^can_.*|_group$/.test(setting)) {
    if (typeof value === "number") return groupText(value, names);
    const { direct_members: people, direct_subgroups: groups } = value as {
      direct_members?: number[];
      direct_subgroups?: number[];
    };
    return shorten(
      [
        ...(groups ?? []).map((id) => groupText(id, names)),
        ...(people ?? []).map((id) => names.userName(id)),
      ].join(", "),
    );
  }
  return shorten(typeof value === "object" ? JSON.stringify(value) : String(value));
}

function groupText(id: number, names: ValueNames): string {
  const group = names.groups.get(id);
  return group ? names.groupName(group) : String(id);
}

function shorten(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 1)}…` : text || "–";
}
