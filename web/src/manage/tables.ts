/** The settings of channels, groups, and the organization, by page. */

import { declaredGroups, ORGANIZATION } from "../settings/declared";
import type { FieldGroup, SettingField } from "../settings/form/fields";

const holders = (...names: string[]): SettingField[] =>
  names.map((name) => ({ name, kind: "holders" as const }));
export const CHANNEL_PERMISSIONS: readonly FieldGroup[] = [
  {
    name: "channelPeople",
    fields: holders(
      "can_subscribe_group",
      "can_add_subscribers_group",
      "can_remove_subscribers_group",
      "can_administer_channel_group",
    ),
  },
  {
    name: "channelWriting",
    fields: holders("can_send_message_group", "can_create_topic_group"),
  },
  {
    name: "channelMessages",
    fields: holders(
      "can_resolve_topics_group",
      "can_move_messages_within_channel_group",
      "can_move_messages_out_of_channel_group",
      "can_delete_own_message_group",
      "can_delete_any_message_group",
    ),
  },
];

export const GROUP_PERMISSIONS: readonly FieldGroup[] = [
  {
    name: "groupPermissions",
    fields: holders(
      "can_mention_group",
      "can_join_group",
      "can_leave_group",
      "can_add_members_group",
      "can_remove_members_group",
      "can_manage_group",
    ),
  },
];

const DETAILS: Record<string, Partial<SettingField>> = {
  name: { max: 40 },
  description: { kind: "area", max: 1000 },
  default_language: { kind: "language" },
  message_retention_days: { kind: "limit", cautious: (days) => days !== null },
  default_code_block_language: { max: 80 },
  video_chat_provider: { kind: "choice", values: [0, 1, 3, 4, 5, 7, 100] },
  jitsi_server_url: { max: 200, empty: "default" },
  moderation_request_channel_id: { privateOnly: true },
  digest_weekday: { kind: "choice", values: [0, 1, 2, 3, 4, 5, 6] },
};
const sections = (...names: string[]) => declaredGroups(ORGANIZATION, names, DETAILS);

/** Without a heading. */
export const ORGANIZATION_PROFILE = sections("profile").map((group) => ({ ...group, name: "" }));

export const MESSAGES = sections("editing", "moving", "display", "announcements", "calls", "email");

export const PERMISSIONS = sections(
  ...[
    "joining",
    "channelPermissions",
    "messagePermissions",
    "directPermissions",
    "peoplePermissions",
    "botPermissions",
  ],
  "limits",
);

/** The organization's settings by the names that PATCH /realm takes. */
export function realmValues(realm: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(realm)
      .filter(([name]) => name.startsWith("realm_"))
      .map(([name, value]) => [name.slice("realm_".length), value]),
  );
}
