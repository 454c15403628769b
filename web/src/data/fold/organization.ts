import type { Linkifier, Playground, RealmEmoji } from "../../wire/objects";
import type { Fold } from "./builder";

export const ORGANIZATION_FOLDS: Record<string, Fold> = {
  "realm/update": (next, event) => {
    next.put("realm", {
      ...next.data.realm,
      [`realm_${String(event["property"])}`]: event["value"],
    });
  },
  "realm/update_dict": (next, event) => {
    const { realm } = next.data;
    const changes = Object.entries(event["data"] as Record<string, unknown>)
      .map(([name, value]) => [`realm_${name}`, value] as const)
      // Ignore fields that aren't part of the snapshot.
      .filter(([name]) => name in realm);
    next.put("realm", { ...realm, ...Object.fromEntries(changes) });
  },
  "realm/deactivated": (next) => {
    next.put("realm", { ...next.data.realm, realm_deactivated: true });
  },

  "realm_user_settings_defaults/update": (next, event) => {
    next.put("defaultSettings", {
      ...next.data.defaultSettings,
      [String(event["property"])]: event["value"],
    });
  },

  realm_linkifiers: (next, event) => {
    next.put("linkifiers", event["realm_linkifiers"] as Linkifier[]);
  },
  realm_playgrounds: (next, event) => {
    next.put("playgrounds", event["realm_playgrounds"] as Playground[]);
  },

  "realm_domains/add": putDomain,
  "realm_domains/change": putDomain,
  "realm_domains/remove": (next, event) => {
    next.put(
      "domains",
      next.data.domains.filter((domain) => domain.domain !== event["domain"]),
    );
  },

  "realm_emoji/update": (next, event) => {
    const all = event["realm_emoji"] as Record<string, RealmEmoji>;
    next.put("emoji", new Map(Object.entries(all)));
  },
  "realm_emoji/add": (next, event) => {
    const emoji = event["emoji"] as RealmEmoji;
    next.map("emoji").set(String(emoji.id), emoji);
  },
  "realm_emoji/update_one": (next, event) => {
    next.change("emoji", String(event["emoji_id"]), event["data"] as Partial<RealmEmoji>);
  },

  invites_changed: (next) => {
    next.put("invitesChanged", next.data.invitesChanged + 1);
  },
};

function putDomain(...[next, event]: Parameters<Fold>): void {
  const changes = event["realm_domain"] as { domain: string; allow_subdomains: boolean };
  const rest = next.data.domains.filter((domain) => domain.domain !== changes.domain);
  next.put("domains", [...rest, changes]);
}
