"""Subscribing and unsubscribing any number of people, in parts that are each decided quickly."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from tertulia.domain import names
from tertulia.domain.channels import subscriptions
from tertulia.domain.channels.channels import NewChannel
from tertulia.domain.channels.subscriptions import (
    SubscribeRequest,
    SubscribeResult,
    SubscriptionExchange,
    UnsubscribeResult,
)
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.service.node import Caller
from tertulia.state.decision import Verb

T = TypeVar("T")


LONGEST_PAUSE = 1.0
"""Seconds."""


class _Stopped(Refused):
    """A part of a request was refused after earlier parts were done."""


async def subscribe(caller: Caller, wanted: SubscribeRequest) -> SubscribeResult:
    """Subscribe people to channels, creating those that don't exist.

    A large request is split into several commands, after checking everything that can be refused.
    If a command is refused anyway, because something changed in the meantime, earlier ones remain
    in effect. Raise as `tertulia.domain.channels.subscriptions.subscribe`.
    """
    wanted = await _rendered(caller, wanted)
    if _is_one_part(len(wanted.channels), wanted.principals):
        return await caller.submit(subscriptions.subscribe, wanted, caller.render)
    people = caller.consider(subscriptions.check_people, len(wanted.channels), wanted.principals)
    done = SubscribeResult(
        subscribed={}, already_subscribed={}, unauthorized=[], notified=False, created=()
    )
    open_ones = []
    created: list[Channel] = []
    for new in subscriptions.unique_channels(wanted.channels):
        await asyncio.sleep(0)
        checked = caller.consider(subscriptions.check, wanted, new, created)
        if checked.channel is None:
            done.unauthorized.append(checked.name)
            continue
        open_ones.append(new)
        created.extend([checked.channel] if checked.is_new else [])
    try:
        for some in _batches(open_ones, len(people)):
            done = _together(done, await _part(caller, wanted, some, people))
    except Refused as refusal:
        if not done.subscribed:
            raise
        raise _stopped(refusal) from refusal
    if not wanted.notify_subscribed:
        return done
    notified = await caller.submit(subscriptions.notify_subscribed, done.subscribed, caller.render)
    return msgspec.structs.replace(done, notified=notified)


async def _submitted(caller: Caller, verb: Verb[T], *arguments: Any) -> T:
    """Submit one part, then pause for as long as that took, so that other writers get their turn:
    SQLite's lock has no queue."""
    began = caller.node.log.elapsed()
    done = await caller.submit(verb, *arguments)
    await asyncio.sleep(min(max(caller.node.log.elapsed() - began, 0.0), LONGEST_PAUSE))
    return done


async def exchange(
    caller: Caller, wanted: SubscribeRequest, leaving: Sequence[str]
) -> SubscriptionExchange:
    """Subscribe the caller to some channels and unsubscribe them from others in one command. Raise
    as `tertulia.domain.channels.subscriptions.exchange`."""
    wanted = await _rendered(caller, wanted)
    return await caller.submit(subscriptions.exchange, wanted, leaving, caller.render)


async def _rendered(caller: Caller, wanted: SubscribeRequest) -> SubscribeRequest:
    """Render the descriptions of channels that may have to be created."""
    await caller.prepare(*(new.description for new in wanted.channels))
    node, author_id = caller.node, caller.user.id
    channels = tuple(
        msgspec.structs.replace(
            new, rendered_description=node.render(new.description, author_id).html
        )
        for new in wanted.channels
    )
    return msgspec.structs.replace(wanted, channels=channels)


def _is_one_part(channel_count: int, principals: Sequence[int] | None) -> bool:
    people_count = 1 if principals is None else len(principals)
    return (
        channel_count * people_count <= subscriptions.BATCH_SUBSCRIPTIONS
        and channel_count <= subscriptions.BATCH_CHANNELS
    )


def _batches(named: Sequence[T], people_count: int) -> Iterator[Sequence[T]]:
    """Split channels into parts."""
    size = max(
        1,
        min(
            subscriptions.BATCH_CHANNELS, subscriptions.BATCH_SUBSCRIPTIONS // max(1, people_count)
        ),
    )
    for first in range(0, len(named), size):
        yield named[first : first + size]


def _chunks(people: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for first in range(0, len(people), subscriptions.BATCH_SUBSCRIPTIONS):
        yield tuple(people[first : first + subscriptions.BATCH_SUBSCRIPTIONS])


async def _part(
    caller: Caller, wanted: SubscribeRequest, some: Sequence[NewChannel], people: Sequence[int]
) -> SubscribeResult:
    """Subscribe people to channels. If there are too many people for one command, `some` has only
    one channel."""
    first, *others = _chunks(people)
    part = msgspec.structs.replace(
        wanted, channels=tuple(some), principals=first, notify_subscribed=False
    )
    done = await _submitted(caller, subscriptions.subscribe, part, caller.render)
    if not others or done.unauthorized:
        return done
    is_created = bool(done.created)
    verb = partial(subscriptions.subscribe_more, is_created=is_created)
    try:
        channel = caller.state.channel_named(names.channel_name(some[0].name))
        if channel is None:
            raise Refused(f"'{some[0].name}' has been renamed in the meantime.")
        for chunk in others:
            more = msgspec.structs.replace(part, principals=chunk)
            done = _together(done, await _submitted(caller, verb, more, channel.id))
    except Refused as refusal:
        raise _stopped(refusal) from refusal
    return done


def _stopped(refusal: Refused) -> Refused:
    return (
        refusal
        if isinstance(refusal, _Stopped)
        else _Stopped(
            f"{refusal} Earlier parts of this request were completed and remain in effect."
        )
    )


def _together(subscribe_result: SubscribeResult, other: SubscribeResult) -> SubscribeResult:
    """Return the combined result of two parts."""
    for result, more in (
        (subscribe_result.subscribed, other.subscribed),
        (subscribe_result.already_subscribed, other.already_subscribed),
    ):
        for user_id, channel_names in more.items():
            result.setdefault(user_id, []).extend(channel_names)
    return msgspec.structs.replace(
        subscribe_result,
        unauthorized=[*subscribe_result.unauthorized, *other.unauthorized],
        created=(*subscribe_result.created, *other.created),
    )


async def unsubscribe(
    caller: Caller, channel_names: Sequence[str], principals: tuple[int, ...] | None
) -> UnsubscribeResult:
    """Unsubscribe people, in parts like `subscribe`."""
    if _is_one_part(len(channel_names), principals):
        return await caller.submit(subscriptions.unsubscribe, channel_names, principals)
    people = caller.consider(subscriptions.check_people, len(channel_names), principals)
    # The caller comes last, because outside the channel they may no longer be allowed to
    # unsubscribe others.
    people.sort(key=lambda user_id: user_id == caller.user_id)
    result: dict[str, None] = {}
    for name in channel_names:
        await asyncio.sleep(0)
        result[caller.consider(subscriptions.check_unsubscribe, name, people)] = None
    removed: dict[str, None] = {}
    not_removed: dict[str, None] = {}
    try:
        for some in _batches([*result], len(people)):
            for chunk in _chunks(people):
                part = await _submitted(caller, subscriptions.unsubscribe, some, chunk)
                removed.update(dict.fromkeys(part.removed))
                not_removed.update(dict.fromkeys(part.not_removed))
    except Refused as refusal:
        if not removed:
            raise
        raise _stopped(refusal) from refusal
    return UnsubscribeResult(removed=[*removed], not_removed=[*not_removed])
