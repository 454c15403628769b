"""People's notification settings as sets of people, so that a few set operations find a message's
recipients. Only people whose choice differs from the default are stored."""

from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Final

from pyroaring import BitMap

from tertulia.model.channels import Subscription
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.model.users import PersonalSettings
from tertulia.state.channels import SubscriptionTable
from tertulia.state.tables import Index, Table, TableIndex

_USUAL: Final = PersonalSettings(user_id=0)
DEFAULT_EMAIL_DELAY: Final = _USUAL.email_notifications_batching_period_seconds
"""The default delay of notification emails in seconds."""
_PERSONAL: Final = (
    "enable_desktop_notifications",
    "enable_sounds",
    "enable_offline_push_notifications",
    "enable_offline_email_notifications",
    "enable_followed_topic_desktop_notifications",
    "enable_followed_topic_audible_notifications",
    "enable_followed_topic_push_notifications",
    "enable_followed_topic_email_notifications",
    "enable_followed_topic_wildcard_mentions_notify",
    "enable_online_push_notifications",
)
_OF_CHANNELS: Final[Mapping[str, str]] = {
    "desktop_notifications": "enable_channel_desktop_notifications",
    "audible_notifications": "enable_channel_audible_notifications",
    "push_notifications": "enable_channel_push_notifications",
    "email_notifications": "enable_channel_email_notifications",
    "wildcard_mentions_notify": "wildcard_mentions_notify",
}
"""A subscription's settings, each with the general setting that applies if it's None."""
_general = attrgetter(*_OF_CHANNELS.values())
_own = attrgetter(*_OF_CHANNELS)
_USUALLY: Final[tuple[bool, ...]] = _general(_USUAL)
_NOTHING: Final = (None,) * len(_OF_CHANNELS)
_NOBODY: Final = BitMap()


class PersonalChoices(TableIndex[PersonalSettings]):
    """People whose settings differ from the defaults."""

    def __init__(self, settings: Table[PersonalSettings]) -> None:
        self._others = {name: BitMap() for name in _PERSONAL}
        self.periods: dict[int, BitMap] = {}
        """People with a different email delay, by seconds. Don't change it."""
        super().__init__(settings)

    def _update(self, before: PersonalSettings | None, after: PersonalSettings | None) -> None:
        if after is None:
            return  # Settings are never removed.
        user_id = after.user_id
        for name, others in self._others.items():
            if getattr(after, name) is not getattr(_USUAL, name):
                others.add(user_id)
            elif before is not None:
                others.discard(user_id)
        was = None if before is None else before.email_notifications_batching_period_seconds
        period = after.email_notifications_batching_period_seconds
        if was == period:
            return
        if was in self.periods:
            self.periods[was].discard(user_id)
            if not self.periods[was]:
                del self.periods[was]
        if period != DEFAULT_EMAIL_DELAY:
            self.periods.setdefault(period, BitMap()).add(user_id)

    def _detach(self, records: Collection[PersonalSettings]) -> None:
        self._others = {name: BitMap(others) for name, others in self._others.items()}
        self.periods = {period: BitMap(people) for period, people in self.periods.items()}

    def among(self, people: BitMap, name: str) -> BitMap:
        """Return the people among `people` who have the setting turned on."""
        others = self._others[name]
        return people - others if getattr(_USUAL, name) else people & others


class ChannelChoices(Index):
    """The subscribers of each channel whose choices differ from the defaults, by their setting for
    the channel or their general one, and those who muted it."""

    def __init__(self, subscriptions: SubscriptionTable, settings: Table[PersonalSettings]) -> None:
        self._subscriptions, self._settings = subscriptions, settings
        self._others: dict[str, dict[int, BitMap]] = {name: {} for name in _OF_CHANNELS}
        self._muted: dict[int, BitMap] = {}
        self._unusual: set[int] = set()
        """People whose general settings differ from the defaults."""
        self.follow(subscriptions, self._subscription_changed)
        self.follow(settings, self._settings_changed)

    def _subscription_changed(
        self, before: Subscription | None, after: Subscription | None
    ) -> None:
        subscription = after or before
        if subscription is None:
            return
        is_plain = (
            _own(subscription) == _NOTHING
            and not subscription.is_muted
            and subscription.user_id not in self._unusual
        )
        if is_plain and before is None:
            return
        self._file(subscription, is_active=after is not None and after.is_active)

    def _settings_changed(
        self, before: PersonalSettings | None, after: PersonalSettings | None
    ) -> None:
        if after is None:
            return
        general = _general(after)
        if general == (_USUALLY if before is None else _general(before)):
            return
        (self._unusual.discard if general == _USUALLY else self._unusual.add)(after.user_id)
        for subscription in self._subscriptions.of_user[after.user_id].values():
            self._file(subscription, is_active=subscription.is_active)

    def _file(self, subscription: Subscription, *, is_active: bool) -> None:
        settings = self._settings.get(subscription.user_id)
        general = _USUALLY if settings is None else _general(settings)
        for name, personal, otherwise, usual in zip(
            _OF_CHANNELS, _own(subscription), general, _USUALLY, strict=True
        ):
            wants = otherwise if personal is None else personal
            _put(self._others[name], subscription, is_in=is_active and wants is not usual)
        _put(self._muted, subscription, is_in=is_active and subscription.is_muted)

    def among(self, people: BitMap, channel_id: int, name: str) -> BitMap:
        """Return the subscribers among `people` who have the setting turned on."""
        others = self._others[name].get(channel_id, _NOBODY)
        return people - others if getattr(_USUAL, _OF_CHANNELS[name]) else people & others

    def muted(self, channel_id: int) -> BitMap:
        """Return the subscribers who muted the channel. Don't change it."""
        return self._muted.get(channel_id, _NOBODY)


def _put(table: dict[int, BitMap], subscription: Subscription, *, is_in: bool) -> None:
    """Add or remove the subscriber."""
    people = table.get(subscription.channel_id)
    if is_in:
        if people is None:
            people = table[subscription.channel_id] = BitMap()
        people.add(subscription.user_id)
    elif people is not None:
        people.discard(subscription.user_id)
        if not people:
            del table[subscription.channel_id]


class TopicChoices(TableIndex[UserTopic]):
    """People who follow, mute, or unmute each topic."""

    def __init__(self, user_topics: Table[UserTopic]) -> None:
        self._people: dict[tuple[int, str, Visibility], BitMap] = {}
        super().__init__(user_topics)

    def _update(self, before: UserTopic | None, after: UserTopic | None) -> None:
        if before is not None:
            key = (before.channel_id, before.key, before.visibility)
            people = self._people[key]
            people.discard(before.user_id)
            if not people:
                del self._people[key]
        if after is not None:
            key = (after.channel_id, after.key, after.visibility)
            self._people.setdefault(key, BitMap()).add(after.user_id)

    def _detach(self, records: Collection[UserTopic]) -> None:
        self._people = {key: BitMap(people) for key, people in self._people.items()}

    def __call__(self, channel_id: int, key: str, visibility: Visibility) -> BitMap:
        """Return the people with this visibility policy for the topic. Don't change it."""
        return self._people.get((channel_id, key, visibility), _NOBODY)
