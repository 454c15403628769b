"""Personal records, such as drafts, devices, and alert words: tables, indexes, and folds."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from tertulia.model import changes
from tertulia.model.channels import topic_key
from tertulia.model.devices import Device, PushSubscription
from tertulia.model.nouns import Noun
from tertulia.model.personal import AlertWords, MutedUser
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.state.folds import FOLDS, revised
from tertulia.state.tables import Grouped, Index, Ordered, Table, Unique

if TYPE_CHECKING:
    from tertulia.state.state import State

R = TypeVar("R", bound=Struct)


class PersonalTable(Table[R]):
    """Records with a `user_id`, their owner."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_user = Grouped[R](self, attrgetter("user_id"))


class MutedUserTable(PersonalTable[MutedUser]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_muted = Grouped(self, lambda muted: muted.muted_id)


class UserTopicTable(PersonalTable[UserTopic]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_topic = Grouped(self, lambda topic: (topic.channel_id, topic.key))
        """By channel ID and topic key."""


class ScheduledMessageTable(PersonalTable[ScheduledMessage]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_time = Ordered(
            self, lambda scheduled: None if scheduled.failed else scheduled.deliver_at
        )
        """Scheduled messages by time, without those that failed."""


class ReminderTable(PersonalTable[Reminder]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_time = Ordered(self, lambda reminder: reminder.deliver_at)


class DeviceTable(PersonalTable[Device]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.waiting = Ordered(
            self,
            lambda device: (
                device.push.token_given_at if device.push and device.push.is_waiting else None
            ),
        )
        """Devices that wait for the push bouncer, longest first."""


class PushSubscriptionTable(PersonalTable[PushSubscription]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_endpoint = Unique(self, lambda subscription: subscription.endpoint)
        self.of_session = Grouped[PushSubscription](
            self, lambda subscription: subscription.session_id
        )
        self.of_key = Grouped[PushSubscription](self, lambda subscription: subscription.key_id)


_RUN: Final = re.compile(r"[^\W_]+")


class AlertWordIndex(Index):
    """Users by their alert words."""

    def __init__(self, alert_words: Table[AlertWords]) -> None:
        self.users_by_word: dict[str, set[int]] = {}
        """Users by case-folded alert word."""
        self._words_by_run: dict[str, set[str]] = {}
        self.follow(alert_words, self._words_changed)

    def _words_changed(self, before: AlertWords | None, after: AlertWords | None) -> None:
        if before is not None:
            for word in before.words:
                self._remove(compared(word), before.user_id)
        if after is not None:
            for word in after.words:
                key = compared(word)
                self.users_by_word.setdefault(key, set()).add(after.user_id)
                self._words_by_run.setdefault(_first_run(key), set()).add(key)

    def _remove(self, key: str, user_id: int) -> None:
        users = self.users_by_word[key]
        users.discard(user_id)
        if users:
            return
        del self.users_by_word[key]
        run = _first_run(key)
        self._words_by_run[run].discard(key)
        if not self._words_by_run[run]:
            del self._words_by_run[run]

    def alerted_by(self, text: str) -> set[int]:
        """Return the users who have an alert word that appears in the text as a whole word,
        ignoring case."""
        if not self.users_by_word:
            return set()
        plain = compared(text)
        result: set[int] = set()
        # Alert words without letters and digits are under the empty string.
        for run in {*_RUN.findall(plain), ""} & self._words_by_run.keys():
            for word in self._words_by_run[run]:
                users = self.users_by_word[word]
                if not users <= result and _contains(plain, word):
                    result |= users
        return result


def compared(word: str) -> str:
    """Return the word or text case-folded for comparison."""
    return word.casefold()


def _first_run(word: str) -> str:
    match = _RUN.search(word)
    return match[0] if match else ""


def _contains(text: str, word: str) -> bool:
    """Whether the word appears in the text as a whole word."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (start and _is_letter(text[start - 1])) and not (
            end < len(text) and _is_letter(text[end])
        ):
            return True
        start = text.find(word, start + 1)
    return False


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


@FOLDS.of(changes.AlertWordsChanged)
def _(state: State, change: changes.AlertWordsChanged) -> None:
    if change.words:
        state.alert_words.put(AlertWords(user_id=change.user_id, words=change.words))
    else:
        state.alert_words.remove(change.user_id)


FOLDS.puts(changes.UserMuted, "muted_users", "muted")


@FOLDS.of(changes.UserUnmuted)
def _(state: State, change: changes.UserUnmuted) -> None:
    state.muted_users.remove((change.user_id, change.muted_id))


@FOLDS.of(changes.QuietTimesChanged)
def _(state: State, change: changes.QuietTimesChanged) -> None:
    after = change.quiet_times
    if after.paused_until or after.hours:
        state.quiet_times.put(after)
    elif after.user_id in state.quiet_times:
        state.quiet_times.remove(after.user_id)


@FOLDS.of(changes.QueuesEnded)
def _(state: State, change: changes.QueuesEnded) -> None:
    """Do nothing: queues aren't part of the state."""


@FOLDS.of(changes.EventIdsUsedUp)
def _(state: State, change: changes.EventIdsUsedUp) -> None:
    """Do nothing: only the entry's number matters."""


FOLDS.puts(changes.DraftsCreated, "drafts", "drafts")
FOLDS.puts(changes.DraftChanged, "drafts", "draft")
FOLDS.removes(changes.DraftDeleted, "drafts", "draft_id")
FOLDS.puts(changes.DataExportSet, "data_exports", "export")
FOLDS.removes(changes.DataExportsRemoved, "data_exports", "export_ids")
FOLDS.puts(changes.SnippetCreated, "snippets", "snippet")
FOLDS.puts(changes.SnippetChanged, "snippets", "snippet")
FOLDS.removes(changes.SnippetDeleted, "snippets", "snippet_id")
FOLDS.puts(changes.DeviceAdded, "devices", "device")
FOLDS.puts(changes.DeviceChanged, "devices", "device")
FOLDS.removes(changes.DeviceRemoved, "devices", "device_id")
FOLDS.puts(changes.PushTokenAdded, "push_tokens", "token")
FOLDS.removes(changes.PushTokensRemoved, "push_tokens", "token_ids")
FOLDS.puts(changes.PushSubscribed, "push_subscriptions", "subscription")
FOLDS.removes(changes.PushUnsubscribed, "push_subscriptions", "subscription_ids")
FOLDS.puts(changes.MessageScheduled, "scheduled_messages", "message")
FOLDS.puts(changes.ScheduledMessageChanged, "scheduled_messages", "message")
FOLDS.removes(changes.ScheduledMessageRemoved, "scheduled_messages", "scheduled_id")
FOLDS.puts(changes.ReminderSet, "reminders", "reminder")
FOLDS.removes(changes.ReminderRemoved, "reminders", "reminder_id")
FOLDS.puts(changes.NavigationViewAdded, "navigation_views", "view")


@FOLDS.of(changes.NavigationViewChanged)
def _(state: State, change: changes.NavigationViewChanged) -> None:
    values = {"is_pinned": change.is_pinned, "name": change.name}
    values = {field: value for field, value in values.items() if value is not None}
    state.navigation_views.put(revised(state.navigation_views[change.view_id], values))


FOLDS.removes(changes.NavigationViewRemoved, "navigation_views", "view_id")


@FOLDS.of(changes.UserTopicChanged)
def _(state: State, change: changes.UserTopicChanged) -> None:
    key = topic_key(change.topic)
    if change.visibility is Visibility.INHERIT:
        state.user_topics.remove((change.user_id, change.channel_id, key))
        return
    state.user_topics.put(
        UserTopic(
            user_id=change.user_id,
            channel_id=change.channel_id,
            key=key,
            name=change.topic,
            visibility=change.visibility,
            changed_at=change.at,
        )
    )
