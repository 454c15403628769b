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
    next.put("mutedUsers", new Set(muted.map((user) => user.id)));
  },

  onboarding_steps: (next, event) => {
    const steps = event["onboarding_steps"] as { name: string }[];
    next.put("onboarding", new Set(steps.map((step) => step.name)));
  },

  "drafts/add": (next, event) => {
    for (const draft of event["drafts"] as DraftMessage[]) next.map("drafts").set(draft.id, draft);
  },
  "drafts/update": (next, event) => {
    const draft = event["draft"] as DraftMessage;
    next.map("drafts").set(draft.id, draft);
  },
  "drafts/remove": (next, event) => void next.map("drafts").delete(event["draft_id"] as number),

  "saved_snippets/add": putSnippet,
  "saved_snippets/update": putSnippet,
  "saved_snippets/remove": (next, event) =>
    void next.map("snippets").delete(event["saved_snippet_id"] as number),

  "scheduled_messages/add": (next, event) => {
    for (const scheduled of event["scheduled_messages"] as ScheduledMessage[]) {
      next.map("scheduled").set(scheduled.scheduled_message_id, scheduled);
    }
  },
  "scheduled_messages/update": (next, event) => {
    const scheduled = event["scheduled_message"] as ScheduledMessage;
    next.map("scheduled").set(scheduled.scheduled_message_id, scheduled);
  },
  "scheduled_messages/remove": (next, event) =>
    void next.map("scheduled").delete(event["scheduled_message_id"] as number),

  "reminders/add": (next, event) => {
    for (const reminder of event["reminders"] as Reminder[]) {
      next.map("reminders").set(reminder.reminder_id, reminder);
    }
  },
  "reminders/remove": (next, event) =>
    void next.map("reminders").delete(event["reminder_id"] as number),

  "navigation_view/add": (next, event) => {
    const view = event["navigation_view"] as NavigationView;
    next.map("views").set(view.fragment, view);
  },
  "navigation_view/update": (next, event) =>
    next.change("views", String(event["fragment"]), event["data"] as Partial<NavigationView>),
  "navigation_view/remove": (next, event) =>
    void next.map("views").delete(String(event["fragment"])),
};

function putSnippet(...[next, event]: Parameters<Fold>): void {
  const snippet = event["saved_snippet"] as Snippet;
  next.map("snippets").set(snippet.id, snippet);
}
