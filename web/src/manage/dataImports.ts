/** Imports of exports of other chat servers. */

export const KINDS = ["zulip", "slack", "mattermost", "rocketchat"] as const;
export type ImportKind = (typeof KINDS)[number];

export interface Remark {
  kind: string;
  /** The noun in the user's language, in the form that fits the count. */
  label: string;
  reason: string;
  count: number;
  samples: string[];
}

export interface Summary {
  origin: string;
  imported: Record<string, number>;
  skipped: Remark[];
  changed: Remark[];
  /** The nouns of `imported` in the user's language, in the forms that fit the counts. */
  labels: Record<string, string>;
}

export interface DataImport {
  id: number;
  kind: ImportKind;
  state: "checking" | "checked" | "importing" | "finished" | "failed" | "canceled";
  acting_user_id: number;
  file_name: string;
  file_size: number;
  new_accounts: boolean;
  has_file: boolean;
  requested_at: number;
  started_at: number | null;
  ended_at: number | null;
  reason: string;
  progress: {
    step: string;
    messages: number;
    expected: number;
    seconds_left: number | null;
  } | null;
  plan: Summary | null;
  report: Summary | null;
}

export interface Imports {
  imports: DataImport[];
  /** An import of the command line that others have to wait for. */
  unfinished: { origin: string; started_at: number } | null;
  max_file_size_mib: number;
  people_to_invite: number;
}

/** "2 minutes", in the user's language. */
export function timeLeft(seconds: number, language: string): string {
  const [unit, size] =
    seconds < 90 ? ["second", 1] : seconds < 5400 ? ["minute", 60] : ["hour", 3600];
  return new Intl.NumberFormat(language, {
    style: "unit",
    unit: String(unit),
    unitDisplay: "long",
  }).format(Math.max(1, Math.round(seconds / Number(size))));
}
