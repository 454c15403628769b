"""Subscribers' personal settings for a channel."""

import re
from collections.abc import Sequence

from msgspec import Struct

from tertulia.model.changes import SubscriptionChanged
from tertulia.model.errors import Refused
from tertulia.state.decision import CommandContext, Decision

PROPERTIES = (
    "color",
    "is_muted",
    "pin_to_top",
    "desktop_notifications",
    "audible_notifications",
    "push_notifications",
    "email_notifications",
    "wildcard_mentions_notify",
)
"""The names of a subscriber's settings for a channel."""


GENERAL = frozenset(PROPERTIES[3:])
"""Settings that default to None, which uses the user's general setting."""


_COLOR = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})")


class SubscriptionProperty(Struct, frozen=True, kw_only=True):
    """A new value for one of a subscriber's settings."""

    channel_id: int
    name: str
    value: bool | str | None
    """None uses the general setting."""


def set_properties(
    context: CommandContext, given: Sequence[SubscriptionProperty]
) -> Decision[None]:
    """Change the actor's settings for channels, all or none. Raise Refused for channels that the
    actor isn't subscribed to, unknown settings, and invalid values."""
    changes = []
    for subscription_property in given:
        if not context.state.is_subscribed(context.actor.id, subscription_property.channel_id):
            raise Refused(f"You aren't subscribed to channel {subscription_property.channel_id}.")
        name, value = _checked(subscription_property)
        changes.append(
            SubscriptionChanged(
                channel_id=subscription_property.channel_id,
                user_id=context.actor.id,
                property=name,
                value=value,
                archived=context.state.channels[subscription_property.channel_id].is_archived,
            )
        )
    return Decision(None, changes)


def _checked(given: SubscriptionProperty) -> tuple[str, bool | str | None]:
    if given.name not in PROPERTIES:
        raise Refused(f"There's no setting named '{given.name[:50]}'.")
    if given.name == "color":
        return given.name, color(given.value)
    if given.value is None and given.name in GENERAL:
        return given.name, None
    if not isinstance(given.value, bool):
        raise Refused(f"'{given.name}' must be true or false.")
    return given.name, given.value


def color(value: bool | str | None) -> str:
    """Return the color as `#rrggbb` in lowercase. Raise Refused if it's invalid."""
    text = value.strip().lower() if isinstance(value, str) else ""
    if not _COLOR.fullmatch(text):
        raise Refused("A color must be written like #a1b2c3.")
    return text if len(text) == 7 else "#" + "".join(digit * 2 for digit in text[1:])
