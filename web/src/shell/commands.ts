/** Commands of the search box. */

import type { App } from "../app";
import { composing, hasComposeBox } from "../compose/composing.svelte";
import { may, mayCreateChannels } from "../data/permissions";
import { markManyAsRead, setSetting } from "../live/actions";
import { words } from "../words/index.svelte";
import { layout } from "./layout.svelte";

export interface Command {
  name: string;
  run: () => unknown;
}

/** `color_scheme` in the order of the menu. */
export const SCHEMES = [1, 3, 2] as const;

export function schemeName(scheme: (typeof SCHEMES)[number]): string {
  return words.common.schemes[scheme];
}

/** Whether and how the user may invite people: by email or link. */
export function mayInvite({ store }: Pick<App, "store">): "mail" | "link" | null {
  if (may(store, "realm_can_invite_users_group")) return "mail";
  return may(store, "realm_create_multiuse_invite_group") ? "link" : null;
}

/** The commands available now. */
export function commandsOf(app: App): Command[] {
  const { store, router } = app;
  const texts = words.shell.commands;
  const write = (begin: () => void) => () => {
    if (!hasComposeBox(router.route)) router.go("inbox");
    begin();
  };
  return [
    { name: texts.write, run: write(() => composing.topic(null)) },
    { name: words.shell.newDirect, run: write(() => composing.direct()) },
    { name: words.shell.setStatus, run: () => (layout.status = true) },
    ...(mayInvite(app) ? [{ name: words.shell.invite, run: () => (layout.invite = true) }] : []),
    ...(mayCreateChannels(store)
      ? [{ name: words.shell.newChannel, run: () => router.go("channels/new") }]
      : []),
    {
      name: words.shell.markAllRead,
      run: () => markManyAsRead(app, (marker) => marker.readEverything()),
    },
    ...SCHEMES.filter((scheme) => scheme !== store.data.settings.color_scheme).map((scheme) => ({
      name: texts.theme({ name: schemeName(scheme) }),
      run: () => setSetting(app, "color_scheme", scheme),
    })),
    { name: texts.people, run: () => layout.togglePeople() },
    { name: words.shell.help, run: () => (layout.help = true) },
  ];
}
