/** The checklist for new organizations, and what is done. */

import type { Data } from "./data";

export type FirstStep =
  | "invite"
  | "channels"
  | "picture"
  | "profile"
  | "newcomers"
  | "write"
  | "address"
  | "mail"
  | "backups";

type Known = Pick<Data, "me" | "users" | "channels" | "realm">;

/** Facts that aren't in the client's data. */
export interface Facts {
  wrote: boolean;
  /** Whether the server knows its URL, sends email, and makes backups; undefined if the user may
   * not know. */
  address: boolean | undefined;
  mail: boolean | undefined;
  backups: boolean | undefined;
}

/** Channels that a new organization starts with. */
const GIVEN_CHANNELS = 1;

export function firstSteps(slices: Known, facts: Facts): { name: FirstStep; done: boolean }[] {
  const { me, users, channels, realm } = slices;
  let people = 0;
  for (const user of users.values()) {
    if (!user.is_bot && user.is_active !== false) people += 1;
  }
  const fields = Object.values(users.get(me)?.profile_data ?? {});
  const steps: { name: FirstStep; done: boolean | undefined }[] = [
    { name: "invite", done: people > 1 },
    { name: "channels", done: channels.size > GIVEN_CHANNELS },
    { name: "picture", done: realm["realm_icon_source"] === "U" },
    { name: "profile", done: fields.some((field) => field?.value) },
    { name: "newcomers", done: Number(realm["realm_signup_announcements_stream_id"]) > 0 },
    { name: "write", done: facts.wrote },
    { name: "address", done: facts.address },
    { name: "mail", done: facts.mail },
    { name: "backups", done: facts.backups },
  ];
  return steps.flatMap(({ name, done }) => (done === undefined ? [] : [{ name, done }]));
}
