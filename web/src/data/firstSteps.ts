/** What there is to do at first where one runs the place, and what of it is done. Pure. */

import type { Data } from "./data";

export type FirstStep = "invite" | "channels" | "picture" | "profile" | "write";

type Known = Pick<Data, "me" | "users" | "channels" | "realm" | "messages">;

/** The channels that a new organization has by itself, at most. */
const GIVEN_CHANNELS = 2;

export function firstSteps(slices: Known): { name: FirstStep; done: boolean }[] {
  const { me, users, channels, realm, messages } = slices;
  let people = 0;
  for (const user of users.values()) {
    if (!user.is_bot && user.is_active !== false) people += 1;
  }
  const told = Object.values(users.get(me)?.profile_data ?? {});
  const isMine = ({ sender_id }: { sender_id: number }) => sender_id === me;
  return [
    { name: "invite", done: people > 1 },
    { name: "channels", done: channels.size > GIVEN_CHANNELS },
    { name: "picture", done: realm["realm_icon_source"] === "U" },
    { name: "profile", done: told.some((one) => one?.value) },
    { name: "write", done: [...messages.values()].some(isMine) },
  ];
}
