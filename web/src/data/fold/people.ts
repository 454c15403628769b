import type {
  ManagedBot,
  Presence,
  ProfileField,
  Status,
  User,
  UserGroup,
} from "../../wire/objects";
import type { Fold } from "./builder";

type Changes = Partial<User> & {
  user_id: number;
  new_email?: string;
  custom_profile_field?: { id: number; value: string | null; rendered_value?: string };
};

function withRole(role: number): Partial<User> {
  return { role, is_owner: role === 100, is_admin: role <= 200, is_guest: role === 600 };
}

export const PEOPLE_FOLDS: Record<string, Fold> = {
  "realm_user/add": (next, event) => {
    const person = event["person"] as User;
    next.map("users").set(person.user_id, { is_active: true, ...person });
  },

  "realm_user/remove": (next, event) => {
    const { user_id } = event["person"] as User;
    next.map("users").delete(user_id);
    next.map("statuses").delete(user_id);
    next.map("presences").delete(user_id);
  },

  "realm_user/update": (next, event) => {
    const { user_id, new_email, custom_profile_field, ...changes } = event["person"] as Changes;
    const before = next.data.users.get(user_id);
    if (!before) return;
    // Ignore fields that aren't part of the record.
    const changed = Object.entries(changes).filter(([name]) => name in before);
    const user: User = { ...before, ...Object.fromEntries(changed) };
    if (new_email !== undefined) user.email = new_email;
    if (changes.role !== undefined) Object.assign(user, withRole(changes.role));
    if (custom_profile_field) {
      const { id, value, ...rest } = custom_profile_field;
      const filled = { ...user.profile_data };
      if (value === null) delete filled[id];
      else filled[id] = { value, ...rest };
      user.profile_data = filled;
    }
    next.map("users").set(user_id, user);
  },

  custom_profile_fields: (next, event) => {
    const fields = event["fields"] as ProfileField[];
    next.put("profileFields", fields);
    const known = new Set(fields.map((field) => String(field.id)));
    for (const user of next.data.users.values()) {
      const filled = Object.entries(user.profile_data ?? {});
      const filledIn = filled.filter(([id]) => known.has(id));
      if (filledIn.length < filled.length) {
        next.change("users", user.user_id, { profile_data: Object.fromEntries(filledIn) });
      }
    }
  },

  user_status: (next, event) => {
    const { id: _id, type: _type, user_id, ...changes } = event;
    const before = next.data.statuses.get(user_id as number);
    const status = { ...before, ...changes } as Record<string, unknown>;
    const filledIn = Object.entries(status).filter(([, value]) => Boolean(value));
    const statuses = next.map("statuses");
    if (filledIn.length) statuses.set(user_id as number, Object.fromEntries(filledIn) as Status);
    else statuses.delete(user_id as number);
  },

  presence: (next, event) => {
    // Either by user ID, or in the legacy format for one person.
    const changed = event["presences"] as Record<string, Presence> | undefined;
    const presences = next.map("presences");
    for (const [id, presence] of Object.entries(changed ?? {})) presences.set(Number(id), presence);
  },

  "realm_bot/add": (next, event) => {
    const bot = event["bot"] as ManagedBot;
    next.map("bots").set(bot.user_id, bot);
  },
  "realm_bot/delete": (next, event) => {
    next.map("bots").delete((event["bot"] as ManagedBot).user_id);
  },
  "realm_bot/update": (next, event) => {
    const bot = event["bot"] as ManagedBot;
    next.change("bots", bot.user_id, bot);
  },

  "user_group/add": (next, event) => {
    const group = event["group"] as UserGroup;
    next.map("groups").set(group.id, group);
  },
  "user_group/remove": (next, event) => {
    next.map("groups").delete(event["group_id"] as number);
  },
  "user_group/update": (next, event) => {
    next.change("groups", event["group_id"] as number, event["data"] as Partial<UserGroup>);
  },
  "user_group/add_members": members("members", "user_ids", true),
  "user_group/remove_members": members("members", "user_ids", false),
  "user_group/add_subgroups": members("direct_subgroup_ids", "direct_subgroup_ids", true),
  "user_group/remove_subgroups": members("direct_subgroup_ids", "direct_subgroup_ids", false),
};

function members(field: "members" | "direct_subgroup_ids", changed: string, added: boolean): Fold {
  return (next, event) => {
    const group = next.data.groups.get(event["group_id"] as number);
    if (!group) return;
    const after = new Set(group[field]);
    for (const id of event[changed] as number[]) {
      if (added) after.add(id);
      else after.delete(id);
    }
    next.change("groups", group.id, { [field]: [...after].sort((a, b) => a - b) });
  };
}
