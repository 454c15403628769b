import type {
  Draft as DraftMessage,
  NavigationView,
  Reminder,
  ScheduledMessage,
  Snippet,
} from "../../wire/objects";
import type { UserSettings } from "../data";
import type { Fold } from "../fold";

export const OWN_FOLDS: Record<string, Fold> = {
  "user_settings/update": (draft, event) => {
    const news = { [String(event["property"])]: event["value"] };
    draft.put("settings", { ...draft.data.settings, ...news } as UserSettings);
  },

  alert_words: (draft, event) => draft.put("alertWords", event["alert_words"] as string[]),

  muted_users: (draft, event) => {
    const muted = event["muted_users"] as { id: number }[];
    draft.put("mutedUsers", new Set(muted.map((one) => one.id)));
  },

  onboarding_steps: (draft, event) => {
    const steps = event["onboarding_steps"] as { name: string }[];
    draft.put("onboarding", new Set(steps.map((step) => step.name)));
  },

  "drafts/add": (draft, event) => {
    for (const one of event["drafts"] as DraftMessage[]) draft.map("drafts").set(one.id, one);
  },
  "drafts/update": (draft, event) => {
    const one = event["draft"] as DraftMessage;
    draft.map("drafts").set(one.id, one);
  },
  "drafts/remove": (draft, event) => void draft.map("drafts").delete(event["draft_id"] as number),

  "saved_snippets/add": putSnippet,
  "saved_snippets/update": putSnippet,
  "saved_snippets/remove": (draft, event) =>
    void draft.map("snippets").delete(event["saved_snippet_id"] as number),

  "scheduled_messages/add": (draft, event) => {
    for (const one of event["scheduled_messages"] as ScheduledMessage[]) {
      draft.map("scheduled").set(one.scheduled_message_id, one);
    }
  },
  "scheduled_messages/update": (draft, event) => {
    const one = event["scheduled_message"] as ScheduledMessage;
    draft.map("scheduled").set(one.scheduled_message_id, one);
  },
  "scheduled_messages/remove": (draft, event) =>
    void draft.map("scheduled").delete(event["scheduled_message_id"] as number),

  "reminders/add": (draft, event) => {
    for (const one of event["reminders"] as Reminder[]) {
      draft.map("reminders").set(one.reminder_id, one);
    }
  },
  "reminders/remove": (draft, event) =>
    void draft.map("reminders").delete(event["reminder_id"] as number),

  "navigation_view/add": (draft, event) => {
    const one = event["navigation_view"] as NavigationView;
    draft.map("views").set(one.fragment, one);
  },
  "navigation_view/update": (draft, event) =>
    draft.change("views", String(event["fragment"]), event["data"] as Partial<NavigationView>),
  "navigation_view/remove": (draft, event) =>
    void draft.map("views").delete(String(event["fragment"])),
};

function putSnippet(...[draft, event]: Parameters<Fold>): void {
  const one = event["saved_snippet"] as Snippet;
  draft.map("snippets").set(one.id, one);
}
