"""Subscribing people to channels, and unsubscribing them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from tertulia.domain import channel_access, names, permissions, quotas
from tertulia.domain.channels import channels, subscription_changes
from tertulia.domain.channels.channels import NewChannel
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import BotMessage, Render
from tertulia.model.changes import AnyChange, ChannelCreated, Subscribed
from tertulia.model.channels import Channel
from tertulia.model.errors import ChannelExists, Refused
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_BULK_NEW_SUBSCRIPTION_MESSAGES = 100
"""If one request subscribes more people, none of them gets a direct message about it."""
MAX_SUBSCRIPTIONS = 100_000
"""The most subscriptions that one request can begin or end."""
BATCH_SUBSCRIPTIONS = 1000
"""The most subscriptions that one decision begins or ends. Larger requests take several."""
BATCH_CHANNELS = 50
"""The most channels in one decision."""

Principals = Sequence[int] | None
"""User IDs; None for the actor."""


class SubscribeRequest(Struct, frozen=True, kw_only=True):
    """Channels to subscribe people to. Channels that don't exist are created. `colors` are the
    actor's, by channel name."""

    channels: tuple[NewChannel, ...]
    principals: tuple[int, ...] | None = None
    colors: dict[str, str] = {}
    refusals_are_fatal: bool = True
    announce: bool = False
    notify_subscribed: bool = True
    must_be_new: bool = False
    """Whether to raise Refused if a channel with that name exists."""


class CheckedChannel(Struct, frozen=True, kw_only=True):
    """The outcome for one channel: `channel` is None if the actor can't subscribe these people."""

    name: str
    channel: Channel | None = None
    is_new: bool = False


class SubscribeResult(Struct, frozen=True, kw_only=True):
    """The outcome of subscribing people. `subscribed` and `already_subscribed` have channel
    names by user ID, `notified` is whether the people get messages, and `created` has the new
    channels."""

    subscribed: dict[int, list[str]]
    already_subscribed: dict[int, list[str]]
    unauthorized: list[str]
    notified: bool
    created: tuple[Channel, ...]


def named_accounts(context: CommandContext, principals: Principals) -> list[User]:
    """Return the active accounts with these IDs, each once, in order; the actor for None. Raise the
    same Refused for accounts that don't exist, are deactivated, or can't be seen."""
    state, actor = context.state, context.actor
    if principals is None:
        return [actor]
    users: dict[int, User] = {}
    sees_all = permissions.sees_everybody(state, actor)
    for principal in principals:
        user = state.users.get(principal)
        if (
            user is None
            or not user.is_active
            or user.is_system_bot
            or not (sees_all or permissions.sees_user(state, actor, user))
        ):
            raise Refused(f"User {principal} doesn't exist.")
        users[user.id] = user
    return list(users.values())


def _check_size(channel_count: int, people: Sequence[User]) -> None:
    if channel_count * len(people) > MAX_SUBSCRIPTIONS:
        raise Refused(
            f"One request can change at most {MAX_SUBSCRIPTIONS:,} subscriptions, but"
            f" {channel_count:,} channels for {len(people):,} people are more than that."
            " Split it into several smaller requests."
        )


# Subscribing


def subscribe(
    context: CommandContext, wanted: SubscribeRequest, render: Render
) -> Decision[SubscribeResult]:
    """Subscribe people to channels, creating those that don't exist.

    Raise Refused for invalid names, unknown people, and options without permission. If refusals are
    fatal, also without permission to create a channel or to subscribe these people.
    """
    people = named_accounts(context, wanted.principals)
    _check_size(len(wanted.channels), people)
    created: list[Channel] = []
    allowed: list[Channel] = []
    unauthorized: list[str] = []
    for new in unique_channels(wanted.channels):
        checked = _checked_channel(context, wanted, new, people, created)
        if checked.channel is None:
            unauthorized.append(checked.name)
        else:
            allowed.append(checked.channel)
            created.extend([checked.channel] if checked.is_new else [])
    changes: list[AnyChange] = [ChannelCreated(channel=channel) for channel in created]
    outcome = SubscribeResult(
        subscribed={},
        already_subscribed={},
        unauthorized=unauthorized,
        notified=False,
        created=tuple(created),
    )
    fresh = _subscription_changes(context, wanted, people, allowed, outcome)
    changes.extend(change for _, change in fresh)
    notified, messages = _messages_to_subscribed(context, people, fresh, wanted)
    texts = [
        *bot_messages.new_channel_messages(context, created, announce=wanted.announce),
        *messages,
    ]
    joined = [channel for channel, change in fresh if context.actor.id in change.user_ids]
    changes.extend(bot_messages.posting_changes(context, texts, render, created, joined=joined))
    return Decision(msgspec.structs.replace(outcome, notified=notified), changes)


def _checked_channel(
    context: CommandContext,
    wanted: SubscribeRequest,
    new: NewChannel,
    people: Sequence[User],
    created: Sequence[Channel],
) -> CheckedChannel:
    """Return the outcome for one channel. `created` are the channels created by the same command.
    Raise as `subscribe`."""
    known = _visible_by_name(context, new)
    name = known.name if known else names.channel_name(new.name)
    if not known and not wanted.refusals_are_fatal and not channels.may_create(context, new):
        return CheckedChannel(name=name)
    channel = _existing(context, new, wanted)
    is_new = channel is None
    if channel is None:
        quotas.check(context.state, context.actor, quotas.CHANNELS, len(created) + 1)
        channels.check_unlike(created, name)
        channel = channels.new_channel(
            context, new, context.state.channels.next_id() + len(created)
        )
    if _may_subscribe(context, people, channel):
        return CheckedChannel(name=name, channel=channel, is_new=is_new)
    if wanted.refusals_are_fatal:
        raise Refused(f"You can't subscribe these people to '{name}'.")
    return CheckedChannel(name=name)


def check_people(
    context: CommandContext, channel_count: int, principals: Principals
) -> Decision[list[int]]:
    """Return the IDs of the people that a request for `channel_count` channels names, ordered for
    subscribing in batches: owners of bots before their bots. Raise Refused for unknown people and
    too many subscriptions."""
    people = named_accounts(context, principals)
    _check_size(channel_count, people)
    return Decision([user.id for user in sorted(people, key=lambda user: user.is_bot)])


def check(
    context: CommandContext, wanted: SubscribeRequest, new: NewChannel, created: Sequence[Channel]
) -> Decision[CheckedChannel]:
    """Return the outcome for one channel without changing anything. `created` are the channels that
    would be created before it. Raise as `subscribe`."""
    people = named_accounts(context, wanted.principals)
    return Decision(_checked_channel(context, wanted, new, people, created))


def subscribe_more(
    context: CommandContext, wanted: SubscribeRequest, channel_id: int, *, is_created: bool
) -> Decision[SubscribeResult]:
    """Subscribe the next batch of people to a channel, without messages. `is_created` means that
    the request created the channel, with permission to subscribe them. Raise Refused for people who
    are no longer active and, if refusals are fatal, without permission."""
    channel = context.state.channels[channel_id]
    people = named_accounts(context, wanted.principals)
    may = _bots_may_be_in if is_created else _may_subscribe
    unauthorized: list[str] = []
    if not may(context, people, channel):
        if wanted.refusals_are_fatal:
            raise Refused(f"You can't subscribe these people to '{channel.name}'.")
        unauthorized, people = [channel.name], []
    outcome = SubscribeResult(
        subscribed={}, already_subscribed={}, unauthorized=unauthorized, notified=False, created=()
    )
    fresh = _subscription_changes(context, wanted, people, [channel], outcome)
    return Decision(outcome, [change for _, change in fresh])


def notify_subscribed(
    context: CommandContext, subscribed: Mapping[int, Sequence[str]], render: Render
) -> Decision[bool]:
    """Notify people in messages that the actor subscribed them to these channels, as `subscribe`
    does. Return False, and send nothing, if there are more than
    `MAX_BULK_NEW_SUBSCRIPTION_MESSAGES`."""
    if len(subscribed) > MAX_BULK_NEW_SUBSCRIPTION_MESSAGES:
        return Decision(False)
    state = context.state
    messages = []
    for user_id, named in subscribed.items():
        channels = (state.channel_named(name) for name in named)
        new_to = [
            channel for channel in channels if channel and state.is_subscribed(user_id, channel.id)
        ]
        if new_to and user_id != context.actor.id and not state.users[user_id].is_bot:
            messages.append(
                bot_messages.subscribed_message(context.state, context.actor, user_id, new_to)
            )
    return Decision(True, [*bot_messages.posting_changes(context, messages, render)])


def unique_channels(wanted: Iterable[NewChannel]) -> list[NewChannel]:
    """Return the channels without those that repeat a name. Raise Refused for invalid names."""
    channels: dict[str, NewChannel] = {}
    for new in wanted:
        channels.setdefault(names.channel_name(new.name).casefold(), new)
    return list(channels.values())


def _visible_by_name(context: CommandContext, new: NewChannel) -> Channel | None:
    """Return the channel with that name if the actor can see it."""
    channel = context.state.channel_named(new.name)
    if channel is None:
        return None
    seen = channel_access.sees_channel(context.state, context.actor, channel)
    return channel if seen else None


def _existing(context: CommandContext, new: NewChannel, wanted: SubscribeRequest) -> Channel | None:
    """Return the channel with that name. Raise Refused if the actor can't see it; the message says
    only that it can't be created, and only if the actor could create one."""
    channel = context.state.channel_named(new.name)
    if channel is None:
        return None
    if wanted.must_be_new or _visible_by_name(context, new) is None:
        channels.check_may_create(context, new)
    if wanted.must_be_new:
        raise ChannelExists(names.channel_name(new.name))
    return channel


def _may_subscribe(context: CommandContext, people: Sequence[User], channel: Channel) -> bool:
    state, actor = context.state, context.actor
    is_new = channel.id not in state.channels
    reads = is_new or channel_access.reads_channel(state, actor, channel)
    others = (
        channel_access.may_add_subscribers(state, actor, channel)
        if is_new
        else channel_access.may_subscribe_others(state, actor, channel)
    )
    return all(reads if user.id == actor.id else others for user in people) and _bots_may_be_in(
        context, people, channel
    )


def _bots_may_be_in(context: CommandContext, people: Sequence[User], channel: Channel) -> bool:
    brought = {user.id for user in people}
    return all(
        channel_access.bot_may_be_in(context.state, user, channel, brought) for user in people
    )


def _subscription_changes(
    context: CommandContext,
    wanted: SubscribeRequest,
    people: Sequence[User],
    allowed: Sequence[Channel],
    outcome: SubscribeResult,
) -> list[tuple[Channel, Subscribed]]:
    """Return each channel with the change that subscribes its new subscribers, and record the names
    in `outcome`."""
    state, actor = context.state, context.actor
    taken: dict[int, list[str]] = {user.id: [] for user in people}
    fresh: list[tuple[Channel, Subscribed]] = []
    for channel in allowed:
        newcomers = []
        colors: dict[int, str] = {}
        ever = state.subscriptions.of_channel[channel.id]
        for user in people:
            past = ever.get(user.id)
            if past is not None and past.is_active:
                outcome.already_subscribed.setdefault(user.id, []).append(channel.name)
                continue
            outcome.subscribed.setdefault(user.id, []).append(channel.name)
            newcomers.append(user)
            if past is None:
                colors[user.id] = subscription_changes.color_for(state, user.id, taken[user.id])
                taken[user.id].append(colors[user.id])
        if actor in newcomers and channel.name.casefold() in wanted.colors:
            colors[actor.id] = wanted.colors[channel.name.casefold()]
        if newcomers:
            fresh.append(
                (
                    channel,
                    subscription_changes.subscription_change(state, channel, newcomers, colors),
                )
            )
    return fresh


def _messages_to_subscribed(
    context: CommandContext,
    people: Sequence[User],
    fresh: Sequence[tuple[Channel, Subscribed]],
    wanted: SubscribeRequest,
) -> tuple[bool, list[BotMessage]]:
    """Return whether people whom someone else subscribed get messages (not if they are too many),
    and the messages."""
    concerned = {user_id for _, change in fresh for user_id in change.colors}
    if not wanted.notify_subscribed or len(concerned) > MAX_BULK_NEW_SUBSCRIPTION_MESSAGES:
        return False, []
    messages, actor = [], context.actor
    for user in people:
        new_to = [channel for channel, change in fresh if user.id in change.colors]
        if new_to and user.id != actor.id and not user.is_bot:
            messages.append(bot_messages.subscribed_message(context.state, actor, user.id, new_to))
    return True, messages


# Unsubscribing


class UnsubscribeResult(Struct, frozen=True, kw_only=True):
    """The names of channels from which people were unsubscribed, and of channels to which they
    weren't subscribed."""

    removed: list[str]
    not_removed: list[str]


def unsubscribe(
    context: CommandContext, channel_names: Sequence[str], principals: Principals
) -> Decision[UnsubscribeResult]:
    """Unsubscribe people from channels. Raise NoSuchChannel; Refused for unknown people, and for
    other people without permission."""
    state = context.state
    people = named_accounts(context, principals)
    _check_size(len(channel_names), people)
    channels: dict[int, Channel] = {}
    for name in channel_names:
        channel = _open_to_unsubscribe(context, name, people)
        channels[channel.id] = channel
    removed: list[str] = []
    not_removed: list[str] = []
    changes: list[AnyChange] = []
    for channel in channels.values():
        leaving = [user for user in people if state.is_subscribed(user.id, channel.id)]
        if len(leaving) < len(people):
            not_removed.append(channel.name)
        if leaving:
            removed.append(channel.name)
            changes.append(
                subscription_changes.unsubscription_change(
                    state, channel, _with_bots(state, channel, leaving)
                )
            )
    return Decision(UnsubscribeResult(removed=removed, not_removed=not_removed), changes)


def _open_to_unsubscribe(context: CommandContext, name: str, people: Sequence[User]) -> Channel:
    state, actor = context.state, context.actor
    channel = channel_access.visible_channel(state, actor, name=name)
    others = [user for user in people if user.id != actor.id]
    if others:
        permissions.require(
            channel_access.may_unsubscribe_others(state, actor, others, channel),
            "You don't have permission to do this.",
        )
    return channel


def check_unsubscribe(context: CommandContext, name: str, principals: Principals) -> Decision[str]:
    """Return the channel's name in its original spelling, without changing anything. Raise as
    `unsubscribe`."""
    people = named_accounts(context, principals)
    return Decision(_open_to_unsubscribe(context, name, people).name)


def _with_bots(state: State, channel: Channel, leaving: Sequence[User]) -> list[User]:
    """Return these subscribers and the subscribed bots of guests among them, which can't read more
    than their owners."""
    users = {user.id: user for user in leaving}
    for user in leaving:
        if not permissions.is_guest(state, user) or channel_access.open_to_spectators(channel):
            continue
        for bot in state.users.bots_of(user.id):
            if state.is_subscribed(bot.id, channel.id):
                users[bot.id] = bot
    return list(users.values())


class SubscriptionExchange(Struct, frozen=True, kw_only=True):
    """The result of subscribing and unsubscribing in one request."""

    outcome: SubscribeResult
    removal: UnsubscribeResult


def exchange(
    context: CommandContext, wanted: SubscribeRequest, leaving: Sequence[str], render: Render
) -> Decision[SubscriptionExchange]:
    """Subscribe the actor to some channels and unsubscribe them from others: all or nothing.

    Raise as `subscribe` and `unsubscribe`; Refused for a channel that is named for both.
    """
    left = {name.strip().casefold() for name in leaving}
    for new in wanted.channels:
        if new.name.strip().casefold() in left:
            raise Refused(
                f"You can't both add and delete '{names.channel_name(new.name)}' in one request."
            )
    removed = unsubscribe(context, leaving, None)
    added = subscribe(context, wanted, render)
    return Decision(
        SubscriptionExchange(outcome=added.result, removal=removed.result),
        [*removed.changes, *added.changes],
    )


# Personal settings
