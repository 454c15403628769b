"""Usage statistics, and failing deliveries."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, convert

from tertulia.domain import permissions
from tertulia.service import usage as counting
from tertulia.store import feeds, lanes, outbox, usage
from tertulia.store.lanes import DeliveryFailure
from tertulia.wire.http.parameters import Doc
from tertulia.wire.http.routing import ApiResponse, Call

MAX_ROWS: Final = 100
"""Users, channels, and deliveries of each kind in a response."""


class PeriodObject(Struct, kw_only=True):
    """A day or a week in UTC."""

    begins_at: Annotated[int, Doc("UNIX seconds.")]
    people: Annotated[int, Doc("Users who interacted with a client.")]
    messages: Annotated[int, Doc("Messages sent, including those deleted since.")]


class UserStorage(Struct, kw_only=True):
    """The files that a user has uploaded."""

    user_id: int
    files: int
    size: Annotated[int, Doc("In bytes.")]


class ChannelStorage(Struct, kw_only=True):
    """The files that a channel's messages link to. A file linked in several channels counts in
    each."""

    stream_id: Annotated[int | None, Doc("Null for direct messages.")]
    files: int
    size: Annotated[int, Doc("In bytes.")]


class UsageResponse(ApiResponse, kw_only=True):
    """The organization's usage statistics."""

    counted_at: Annotated[
        float | None,
        Doc("When the statistics were computed, in UNIX seconds; null if they haven't been yet."),
    ]
    progress: Annotated[
        float, Doc("The share of all messages that have been counted, from 0 to 1.")
    ]
    days: Annotated[list[PeriodObject], Doc("Oldest first.")]
    weeks: Annotated[list[PeriodObject], Doc("Complete weeks from Monday to Sunday, oldest first.")]
    upload_space_used: Annotated[int, Doc("Size of all files in bytes.")]
    users: Annotated[
        list[UserStorage], Doc("The 100 users with the largest total file size, largest first.")
    ]
    streams: Annotated[
        list[ChannelStorage],
        Doc("The 100 channels with the largest total file size, largest first."),
    ]


async def get_usage(
    call: Call, days: Annotated[int, Meta(ge=1, le=3660, description="Including today.")] = 30
) -> UsageResponse:
    """Get usage statistics. Requires an administrator. This endpoint is a Tertulia extension.

    Statistics include the active users and sent messages by day and by week, and the users and
    channels that take up the most storage.
    """
    permissions.require_administrator(call.state, call.user)
    until = usage.day_of(call.now) + 1
    first = until - days
    read = call.node.store.read
    counted = await read(usage.progress)
    by_day = await read(usage.periods, first, until)
    by_week = await read(usage.periods, first, until, days=usage.WEEK_DAYS)
    channels = await read(usage.files_by_channel, MAX_ROWS)
    uploads = call.state.uploads
    return UsageResponse(
        counted_at=counted.at or None,
        progress=counting.progress(counted, call.state),
        days=convert(by_day, list[PeriodObject], from_attributes=True),
        weeks=convert(by_week, list[PeriodObject], from_attributes=True),
        upload_space_used=uploads.space_used,
        users=[
            UserStorage(user_id=user_id, files=uploads.of_user.count(user_id), size=size)
            for user_id, size in uploads.largest(MAX_ROWS)
        ],
        streams=[
            ChannelStorage(
                stream_id=channel.channel_id, files=channel.files, size=channel.file_bytes
            )
            for channel in channels
        ],
    )


class FailingDeliveryObject(Struct, kw_only=True):
    """A delivery that has failed so far, and is retried."""

    kind: Literal["mail", "push", "webhook", "feed"]
    user_id: Annotated[
        int | None, Doc("The bot, or the recipient of push notifications. Null for emails.")
    ]
    name: Annotated[
        str,
        Doc("The feed's URL, or the name of the push subscription. Empty for emails and webhooks."),
    ]
    waiting: Annotated[
        int, Doc("The number of undelivered items. For feeds, the number of failures in a row.")
    ]
    since: Annotated[float | None, Doc("In UNIX seconds; null if unknown.")]
    reason: Annotated[str, Doc("Why the last attempt failed.")]


class FailingDeliveriesResponse(ApiResponse, kw_only=True):
    """At most 100 deliveries of each kind, longest failing first."""

    deliveries: list[FailingDeliveryObject]


async def get_failing_deliveries(call: Call) -> FailingDeliveriesResponse:
    """Get the emails, push notifications, outgoing webhooks, and feeds that currently fail.
    Requires an administrator. This endpoint is a Tertulia extension."""
    permissions.require_administrator(call.state, call.user)
    read, feed_ids = call.node.store.read, {feed.id for feed in call.state.feeds}
    mails = await read(outbox.failing)
    pushes = await read(lanes.DEVICES.failing, MAX_ROWS)
    services = await read(lanes.SERVICES.failing, MAX_ROWS)
    statuses = await read(feeds.statuses, feed_ids) if feed_ids else {}
    failing = [] if mails is None else [_delivery("mail", mails, None)]
    for push in pushes:
        subscription = call.state.push_subscriptions.get(push.of)
        if subscription is not None:
            failing.append(_delivery("push", push, subscription.user_id, subscription.name))
    failing += [
        _delivery("webhook", service, service.of)
        for service in services
        if service.of in call.state.users
    ]
    failing += _failing_feeds(call, statuses)
    return FailingDeliveriesResponse(deliveries=failing)


def _delivery(
    kind: Literal["mail", "push", "webhook"],
    delivery_failure: DeliveryFailure,
    user_id: int | None,
    name: str = "",
) -> FailingDeliveryObject:
    return FailingDeliveryObject(
        kind=kind,
        user_id=user_id,
        name=name,
        waiting=delivery_failure.waiting,
        since=delivery_failure.since or None,
        reason=delivery_failure.reason,
    )


def _failing_feeds(
    call: Call, statuses: dict[int, tuple[feeds.FeedStatus, float]]
) -> list[FailingDeliveryObject]:
    failing = []
    for feed_id, (status, _) in statuses.items():
        feed = call.state.feeds.get(feed_id)
        if feed is not None and status.failures and status.url == feed.url:
            failing.append(
                FailingDeliveryObject(
                    kind="feed",
                    user_id=feed.bot_id,
                    name=feed.url,
                    waiting=status.failures,
                    since=status.failing_since or None,
                    reason=status.reason,
                )
            )
    failing.sort(key=lambda item: item.since or 0.0)
    return failing[:MAX_ROWS]
