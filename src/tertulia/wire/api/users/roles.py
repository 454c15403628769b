"""Data that users gain or lose access to when their role changes."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from tertulia.domain import permissions
from tertulia.model.changes import UserChanged
from tertulia.model.groups import ChannelSight
from tertulia.model.users import Role, User
from tertulia.wire.api.bots.objects import (
    BotAddEvent,
    BotDeleteEvent,
    BotObject,
    RemovedBot,
    administers_bot,
    bot_object,
)
from tertulia.wire.api.channels.events import (
    ChannelVisibilityChanges,
    DefaultChannelsEvent,
    default_channels,
    visibility_changes,
    visibility_events,
)
from tertulia.wire.api.default_groups import DefaultChannelGroupsEvent, default_channel_groups
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.users import account_events
from tertulia.wire.api.users.account_events import AccountView, account_view


class OwnView(NamedTuple):
    """The data that the user with the new role gained or lost access to."""

    addresses: tuple[tuple[int, AccountView], ...]
    bots_lost: tuple[int, ...]
    bots_gained: tuple[BotObject, ...]
    channels: ChannelVisibilityChanges
    defaults: bool | None
    """Whether the user gained (True) or lost the list of default channels."""


def own_view(context: ProjectionContext, change: UserChanged, viewer: Viewer) -> OwnView | None:
    """Return the view of the user whose role changed, or who became a full member, and of bots
    whose permissions changed with it; None for everyone else.

    Gained access is included only if the user still has it.
    """
    user = viewer.user
    if user.id in change.rights:
        was, became = (_standing_alone(user, Role(role)) for role in change.rights[user.id])
    elif user.id == change.user_id and not change.values.keys().isdisjoint({"role", "joined_at"}):
        was = _with_role(user, change.was)
        became = _with_role(user, change.values)
    elif any(_has(user.id, sight) for sight in change.sight) or (
        user.id == change.user_id and (change.gained or change.lost)
    ):
        was = became = user
    else:
        return None
    bots_lost, bots_gained = _bots(context, was, became, viewer.user)
    return OwnView(
        addresses=_in_sight(context, _addresses(context, was, became), viewer),
        bots_lost=bots_lost,
        bots_gained=bots_gained,
        channels=_channels(context, change, viewer),
        defaults=_defaults(context, was, became, user),
    )


def _with_role(user: User, values: Mapping[str, Any]) -> User:
    return msgspec.structs.replace(user, role=Role(values.get("role", user.role)))


def _standing_alone(bot: User, role: Role) -> User:
    """Return the bot as if it had the role without an owner."""
    alone = None if bot.bot is None else msgspec.structs.replace(bot.bot, owner_id=None)
    return msgspec.structs.replace(bot, role=role, bot=alone)


def _has(user_id: int, sight: ChannelSight) -> bool:
    return user_id in sight.gained or user_id in sight.lost


def _defaults(context: ProjectionContext, was: User, became: User, present: User) -> bool | None:
    state = context.state
    if permissions.is_guest(state, was) is permissions.is_guest(state, became):
        return None
    return not permissions.is_guest(state, present)


def _channels(
    context: ProjectionContext, change: UserChanged, viewer: Viewer
) -> ChannelVisibilityChanges:
    affected, subscribers = (change.user_id,), change.subscribers
    gained = [
        ChannelSight(
            channel_id=channel_id, gained=affected, subscribers=subscribers.get(channel_id, ())
        )
        for channel_id in change.gained
    ]
    lost = [ChannelSight(channel_id=channel_id, lost=affected) for channel_id in change.lost]
    return visibility_changes(context, [*lost, *gained, *change.sight], viewer)


def _in_sight(
    context: ProjectionContext, user_ids: Iterable[int], viewer: Viewer
) -> tuple[tuple[int, AccountView], ...]:
    users = context.state.users
    views = ((user_id, account_view(context, users[user_id], viewer)) for user_id in user_ids)
    return tuple((user_id, account) for user_id, account in views if account is not None)


def _addresses(context: ProjectionContext, was: User, became: User) -> Iterable[int]:
    state = context.state
    for user in permissions.users_seen(state, became):
        saw = permissions.sees_address(state, was, user)
        if saw != permissions.sees_address(state, became, user):
            yield user.id


def _bots(
    context: ProjectionContext, was: User, became: User, present: User
) -> tuple[tuple[int, ...], tuple[BotObject, ...]]:
    state = context.state
    saw_all = permissions.is_administrator(state, was)
    if saw_all is permissions.is_administrator(state, became):
        return (), ()
    bots = [
        user
        for user in permissions.users_seen(state, None)
        if administers_bot(state, was, user) != administers_bot(state, became, user)
    ]
    if saw_all:
        return tuple(bot.id for bot in bots if bot.joined_at <= context.at), ()
    if not permissions.is_administrator(state, present):
        return (), ()
    return (), tuple(bot_object(state, present, bot, context.unsealed) for bot in bots)


def own_events(context: ProjectionContext, view: OwnView) -> Iterable[Event]:
    users = context.state.users
    for user_id, account in view.addresses:
        yield from account_events.address_seen(users[user_id], account)
    for user_id in view.bots_lost:
        yield BotDeleteEvent(bot=RemovedBot(user_id=user_id))
    for bot in view.bots_gained:
        yield BotAddEvent(bot=bot)
    yield from visibility_events(context, view.channels)
    if view.defaults is not None:
        yield (
            default_channels(context.state)
            if view.defaults
            else DefaultChannelsEvent(default_streams=[])
        )
        yield (
            default_channel_groups(context.state)
            if view.defaults
            else DefaultChannelGroupsEvent(default_stream_groups=[])
        )
