import type {
  Draft as DraftMessage,
  NavigationView,
  Reminder,
  ScheduledMessage,
  Snippet,
} from "../../wire/objects";
import type { UserSettings } from "../data";
import type { Fold } from "./builder";

export const OWN_FOLDS: Record<string, Fold> = {
  "user_settings/update": (next, event) => {
    const changes = { [String(event["property"])]: event["value"] };
    next.put("settings", { ...next.data.settings, ...changes } as UserSettings);
  },

  alert_words: (next, event) => next.put("alertWords", event["alert_words"] as string[]),

  muted_users: (next, event) => {
    const muted = event["muted_users"] as { id: number }[];
    next.put("mutedUsers", new Set(muted.map((one) => one.id)));
  },

  onboarding_steps: (next, event) => {
    const steps = event["onboarding_steps"] as { name: string }[];
    next.put("onboarding", new Set(steps.map((step) => step.name)));
  },

  "drafts/add": (next, event) => {
    for (const one of event["drafts"] as DraftMessage[]) next.map("drafts").set(one.id, one);
  },
  "drafts/update": (next, event) => {
    const one = event["draft"] as DraftMessage;
    next.map("drafts").set(one.id, one);
  },
  "drafts/remove": (next, event) => void next.map("drafts").delete(event["draft_id"] as number),

  "saved_snippets/add": putSnippet,
  "saved_snippets/update": putSnippet,
  "saved_snippets/remove": (next, event) =>
    void next.map("snippets").delete(event["saved_snippet_id"] as number),

  "scheduled_messages/add": (next, event) => {
    for (const one of event["scheduled_messages"] as ScheduledMessage[]) {
      next.map("scheduled").set(one.scheduled_message_id, one);
    }
  },
  "scheduled_messages/update": (next, event) => {
    const one = event["scheduled_message"] as ScheduledMessage;
    next.map("scheduled").set(one.scheduled_message_id, one);
  },
  "scheduled_messages/remove": (next, event) =>
    void next.map("scheduled").delete(event["scheduled_message_id"] as number),

  "reminders/add": (next, event) => {
    for (const one of event["reminders"] as Reminder[]) {
      next.map("reminders").set(one.reminder_id, one);
    }
  },
  "reminders/remove": (next, event) =>
    void next.map("reminders").delete(event["reminder_id"] as number),

  "navigation_view/add": (next, event) => {
    const one = event["navigation_view"] as NavigationView;
    next.map("views").set(one.fragment, one);
  },
  "navigation_view/update": (next, event) =>
    next.change("views", String(event["fragment"]), event["data"] as Partial<NavigationView>),
  "navigation_view/remove": (next, event) =>
    void next.map("views").delete(String(event["fragment"])),
};

function putSnippet(...[next, event]: Parameters<Fold>): void {
  const one = event["saved_snippet"] as Snippet;
  next.map("snippets").set(one.id, one);
}
