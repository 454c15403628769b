"""What users keep for themselves: the tables and their indexes."""

from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

from tertulia.model.devices import PushSubscription
from tertulia.model.nouns import Noun
from tertulia.model.personal import MutedUser
from tertulia.model.profiles import ProfileValue, UserStatus
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.model.user_topics import UserTopic
from tertulia.state.indexes import Grouped, Ordered, Unique
from tertulia.state.tables import Table

R = TypeVar("R", bound=Struct)


class PersonalTable(Table[R]):
    """Records with a `user_id`: that of the account whose they are."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_user = Grouped[R](self, attrgetter("user_id"))


class MutedUsers(PersonalTable[MutedUser]):
    """Who has muted whom."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_muted = Grouped(self, lambda muted: muted.muted_id)


class UserTopics(PersonalTable[UserTopic]):
    """The topics that users follow, mute or unmute."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_topic = Grouped(self, lambda topic: (topic.channel_id, topic.key))
        """By channel ID and topic key."""


class ProfileValues(PersonalTable[ProfileValue]):
    """What users say of themselves in the organization's profile fields."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_field = Grouped(self, lambda value: value.field_id)


class Statuses(Table[UserStatus]):
    """What users say that they are doing."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_end = Ordered(self, lambda status: status.ends_at or None)
        """Those that end."""


class ScheduledMessages(PersonalTable[ScheduledMessage]):
    """Messages that are to be sent later."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_time = Ordered(self, lambda one: None if one.failed else one.deliver_at)
        """Those that are still to be tried."""


class Reminders(PersonalTable[Reminder]):
    """Messages of which users want to be reminded."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_time = Ordered(self, lambda reminder: reminder.deliver_at)


class PushSubscriptions(PersonalTable[PushSubscription]):
    """Where people's programs are pushed to."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_endpoint = Unique(self, lambda one: one.endpoint)
        self.of_session = Grouped[PushSubscription](self, lambda one: one.session_id)
