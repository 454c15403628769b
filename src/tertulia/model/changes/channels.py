"""Channels, and who is subscribed to them."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.channels import Channel


class ChannelCreated(Change, frozen=True, tag="channel_created"):
    """A channel exists, as yet without subscribers."""

    channel: Channel


class ChannelChanged(Change, frozen=True, tag="channel_changed"):
    """The named fields of a channel are new; `was` holds the values before.

    `gained` and `lost` are the users who can see that the channel exists because of this, and
    those who cannot any more. `subscribers` are those of that moment, where somebody gained sight
    of it or it came back from the archive. Archiving is the field `is_archived`, and `archived` is
    what it was before; the three fields of privacy are always named together.
    """

    channel_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    archived: bool = False


class Subscribed(Change, frozen=True, tag="subscribed"):
    """Users are subscribed to a channel, each with the color the channel has for them.

    `after` is the newest message they did not receive. `gained` are those of them who could not
    see the channel before. `count` is how many active accounts are subscribed then,
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
    """Users are not subscribed to a channel any more.

    `until` is the last message they received. `lost` are those of them who cannot see the channel
    any more. `name` is the channel's at that moment, `archived` whether it is archived.
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
