"""Changes that begin and end subscriptions, used by the verbs for channels, users, and
subscriptions."""

from collections.abc import Iterable
from itertools import islice
from operator import attrgetter
from typing import Final, cast

from tertulia.domain import channel_access
from tertulia.model.changes import AnyChange, Subscribed, Unsubscribed
from tertulia.model.channels import Channel, Subscription
from tertulia.model.users import User
from tertulia.state.state import State

COLORS = (
    *("#76ce90", "#fae589", "#a6c7e5", "#e79ab5", "#bfd56f", "#f4ae55", "#b0a5fd", "#addfe5"),
    *("#f5ce6e", "#c2726a", "#94c849", "#bd86e5", "#ee7e4a", "#a6dcbf", "#95a5fd", "#53a063"),
    *("#9987e1", "#e4523d", "#c2c2c2", "#4f8de4", "#c6a8ad", "#e7cc4d", "#c8bebf", "#a47462"),
)
"""Default colors of channels, in the order in which they are assigned."""
_COLOR: Final = attrgetter("color")


def color_for(state: State, user_id: int, taken: Iterable[str] = ()) -> str:
    """Return the first color that none of the user's newest subscriptions has. `taken` are colors
    assigned in this command. If all colors are in use, rotate through them."""
    # Called for thousands of people, each with up to thousands of subscriptions.
    subscriptions = state.subscriptions.of_user[user_id]
    given = [*taken]
    newest = islice(reversed(cast(dict[int, Subscription], subscriptions).values()), len(COLORS))
    used = {*given, *map(_COLOR, newest)}
    for color in COLORS:
        if color not in used:
            return color
    return COLORS[(len(subscriptions) + len(given)) % len(COLORS)]


def subscription_change(
    state: State, channel: Channel, users: Iterable[User], colors: dict[int, str]
) -> Subscribed:
    """Return the change that subscribes users to a channel that they aren't subscribed to. `colors`
    are by user ID; others keep their previous color, or get a free one."""
    people = list(users)
    chosen: dict[int, str] = {}
    ever = state.subscriptions.of_channel[channel.id]
    for user in people:
        past = ever.get(user.id)
        chosen[user.id] = colors.get(user.id) or (past.color if past else color_for(state, user.id))
    return Subscribed(
        channel_id=channel.id,
        colors=chosen,
        after=state.last_message_id,
        gained=tuple(
            user.id for user in people if not channel_access.sees_unsubscribed(state, user, channel)
        ),
        count=len(state.subscribers(channel.id)) + len(people),
        archived=channel.is_archived,
    )


def unsubscription_change(state: State, channel: Channel, leaving: Iterable[User]) -> Unsubscribed:
    """Return the change that ends these users' subscriptions."""
    people = list(leaving)
    return Unsubscribed(
        channel_id=channel.id,
        user_ids=tuple(user.id for user in people),
        until=state.last_message_id,
        lost=tuple(
            user.id for user in people if not channel_access.sees_unsubscribed(state, user, channel)
        ),
        name=channel.name,
        archived=channel.is_archived,
    )


def default_subscription_changes(state: State, user: User) -> list[AnyChange]:
    """Return the changes that subscribe a new user to the default channels."""
    defaults = [c for c in state.channels if c.is_default and not c.is_archived]
    return initial_subscription_changes(state, user, defaults)


def initial_subscription_changes(
    state: State, user: User, channels: Iterable[Channel]
) -> list[AnyChange]:
    """Return the changes that subscribe a new user to the channels."""
    changes: list[AnyChange] = []
    taken: list[str] = []
    for channel in channels:
        color = color_for(state, user.id, taken)
        taken.append(color)
        changes.append(
            Subscribed(
                channel_id=channel.id,
                colors={user.id: color},
                after=state.last_message_id,
                gained=(user.id,)
                if not channel_access.sees_unsubscribed(state, user, channel)
                else (),
                count=len(state.subscribers(channel.id)) + 1,
            )
        )
    return changes
