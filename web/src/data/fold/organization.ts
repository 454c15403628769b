import type { Linkifier, Playground, RealmEmoji } from "../../wire/objects";
import type { Fold } from "../fold";

export const ORGANIZATION_FOLDS: Record<string, Fold> = {
  "realm/update": (draft, event) => {
    draft.put("realm", {
      ...draft.data.realm,
      [`realm_${String(event["property"])}`]: event["value"],
    });
  },
  "realm/update_dict": (draft, event) => {
    const { realm } = draft.data;
    const news = Object.entries(event["data"] as Record<string, unknown>)
      .map(([name, value]) => [`realm_${name}`, value] as const)
      // Ignore fields that aren't part of the snapshot.
      .filter(([name]) => name in realm);
    draft.put("realm", { ...realm, ...Object.fromEntries(news) });
  },
  "realm/deactivated": (draft) => {
    draft.put("realm", { ...draft.data.realm, realm_deactivated: true });
  },

  "realm_user_settings_defaults/update": (draft, event) => {
    draft.put("defaultSettings", {
      ...draft.data.defaultSettings,
      [String(event["property"])]: event["value"],
    });
  },

  realm_linkifiers: (draft, event) => {
    draft.put("linkifiers", event["realm_linkifiers"] as Linkifier[]);
  },
  realm_playgrounds: (draft, event) => {
    draft.put("playgrounds", event["realm_playgrounds"] as Playground[]);
  },

  "realm_domains/add": putDomain,
  "realm_domains/change": putDomain,
  "realm_domains/remove": (draft, event) => {
    draft.put(
      "domains",
      draft.data.domains.filter((one) => one.domain !== event["domain"]),
    );
  },

  "realm_emoji/update": (draft, event) => {
    const all = event["realm_emoji"] as Record<string, RealmEmoji>;
    draft.put("emoji", new Map(Object.entries(all)));
  },
  "realm_emoji/add": (draft, event) => {
    const one = event["emoji"] as RealmEmoji;
    draft.map("emoji").set(String(one.id), one);
  },
  "realm_emoji/update_one": (draft, event) => {
    draft.change("emoji", String(event["emoji_id"]), event["data"] as Partial<RealmEmoji>);
  },

  invites_changed: (draft) => {
    draft.put("invitesChanged", draft.data.invitesChanged + 1);
  },
};

function putDomain(...[draft, event]: Parameters<Fold>): void {
  const news = event["realm_domain"] as { domain: string; allow_subdomains: boolean };
  const rest = draft.data.domains.filter((one) => one.domain !== news.domain);
  draft.put("domains", [...rest, news]);
}
