"""Channels, and who is subscribed to them."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.channels import Channel


class ChannelCreated(Change, frozen=True, tag="channel_created"):
    """A channel was created, without subscribers."""

    channel: Channel


class ChannelChanged(Change, frozen=True, tag="channel_changed"):
    """Fields of a channel have new values: `values`; `was` has the old ones.

    `gained` and `lost` are the users who gained and lost sight of the channel by it. If there are
    `gained`, or the channel was unarchived, `subscribers` are its subscribers at that moment.
    Archiving is the field `is_archived`; `archived` is its value before. The three fields of
    privacy always come together.
    """

    channel_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    archived: bool = False


class Subscribed(Change, frozen=True, tag="subscribed"):
    """Users were subscribed to a channel; `colors` has the channel's color for each.

    `after` is the newest message that they did not receive. `gained` are the users among them who
    could not see the channel before. `count` is the number of active subscribers afterwards,
    `archived` whether the channel is archived.
    """

    channel_id: int
    colors: dict[int, str]
    after: int
    gained: tuple[int, ...] = ()
    count: int | None = None
    archived: bool = False

    @property
    def user_ids(self) -> tuple[int, ...]:
        return tuple(self.colors)


class Unsubscribed(Change, frozen=True, tag="unsubscribed"):
    """Users were unsubscribed from a channel.

    `until` is the last message that they received. `lost` are the users among them who cannot see
    the channel any more. `name` is the channel's name at that moment, `archived` whether it is
    archived.
    """

    channel_id: int
    user_ids: tuple[int, ...]
    until: int
    lost: tuple[int, ...] = ()
    name: str = ""
    archived: bool = False


class SubscriptionChanged(Change, frozen=True, tag="subscription_changed"):
    """A personal setting of a channel (`color`, `is_muted`, …) has a new value.

    `archived` is whether the channel is archived.
    """

    channel_id: int
    user_id: int
    property: str
    value: bool | str | None
    archived: bool = False
