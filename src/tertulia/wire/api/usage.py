"""How the organization is used, and what does not work just now, for its administrators."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.service import usage as counting
from tertulia.store import failures, feeds, usage
from tertulia.store.database import Connection
from tertulia.store.failures import DeliveryFailure
from tertulia.store.usage import ChannelFiles, Period, UsageProgress
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call

MOST_SHOWN: Final = 100
"""People, channels, and deliveries of one kind."""

# Usage


class GetUsage(Params, kw_only=True, frozen=True):
    """Of how many days."""

    days: Annotated[int, Meta(ge=1, le=3660, description="With today.")] = 30


class PeriodObject(Struct, kw_only=True):
    """A day or a week, of UTC."""

    begins_at: Annotated[int, Meta(description="UNIX seconds.")]
    people: Annotated[int, Meta(description="How many gave input to a client.")]
    messages: Annotated[int, Meta(description="How many were sent, whatever became of them since.")]


class FilesOfPerson(Struct, kw_only=True):
    """What an account has uploaded."""

    user_id: int
    files: int
    size: Annotated[int, Meta(description="Bytes.")]


class FilesOfChannel(Struct, kw_only=True):
    """The files that messages of a channel link. One that is linked in several counts in each."""

    stream_id: Annotated[int | None, Meta(description="null for direct messages.")]
    files: int
    size: Annotated[int, Meta(description="Bytes.")]


class Usage(ApiResponse, kw_only=True):
    """How much the organization is used."""

    counted_at: Annotated[
        float | None,
        Meta(description="When it was counted, in UNIX seconds; null before it was ever done."),
    ]
    progress: Annotated[
        float, Meta(description="Which part of all messages has been counted: 0 to 1.")
    ]
    days: Annotated[list[PeriodObject], Meta(description="The oldest first.")]
    weeks: Annotated[
        list[PeriodObject], Meta(description="Whole ones from Monday on, the oldest first.")
    ]
    upload_space_used: Annotated[int, Meta(description="Bytes of all files together.")]
    users: Annotated[
        list[FilesOfPerson],
        Meta(description="Those with most bytes in files, 100 at most, the largest first."),
    ]
    streams: Annotated[list[FilesOfChannel], Meta(description="The same by channel.")]


async def get_usage(call: Call, params: GetUsage) -> Usage:
    """How many people were active and how many messages were sent, by day and by week, and whose
    files take most room; for administrators. Not of the reference's interface: this server's."""
    permissions.require_administrator(call.state, call.user)
    until = usage.day_of(call.now) + 1
    first = until - params.days

    def read(
        connection: Connection,
    ) -> tuple[UsageProgress, list[Period], list[Period], list[ChannelFiles]]:
        return (
            usage.progress(connection),
            usage.periods(connection, first, until),
            usage.periods(connection, first, until, days=usage.WEEK_DAYS),
            usage.files_by_channel(connection, MOST_SHOWN),
        )

    counted, days, weeks, channels = await call.node.store.read(read)
    uploads = call.state.uploads
    return Usage(
        counted_at=counted.at or None,
        progress=counting.progress(counted, call.state),
        days=[_period(one) for one in days],
        weeks=[_period(one) for one in weeks],
        upload_space_used=uploads.space_used,
        users=[
            FilesOfPerson(user_id=user_id, files=uploads.of_user.count(user_id), size=size)
            for user_id, size in uploads.largest(MOST_SHOWN)
        ],
        streams=[
            FilesOfChannel(stream_id=one.channel_id, files=one.files, size=one.file_bytes)
            for one in channels
        ],
    )


def _period(one: Period) -> PeriodObject:
    return PeriodObject(begins_at=one.begins_at, people=one.people, messages=one.messages)


# What fails


class FailingDelivery(Struct, kw_only=True):
    """What could not be delivered so far, and is tried again."""

    kind: Literal["mail", "push", "webhook", "feed"]
    user_id: Annotated[
        int | None,
        Meta(description="The bot, or of pushes the person; null for mails."),
    ]
    name: Annotated[
        str,
        Meta(
            description="The feed's address, or what the person calls the program that is pushed"
            " to; empty for mails and webhooks."
        ),
    ]
    waiting: Annotated[
        int, Meta(description="How many wait to be delivered; of a feed, the failures in a row.")
    ]
    since: Annotated[float | None, Meta(description="UNIX seconds; null where that is not known.")]
    reason: Annotated[str, Meta(description="Why the last attempt failed.")]


class FailingDeliveries(ApiResponse, kw_only=True):
    """Of each kind 100 at most, those that have failed longest first."""

    deliveries: list[FailingDelivery]


async def get_failing_deliveries(call: Call, params: NoParams) -> FailingDeliveries:
    """The mails, pushes, calls of bots' services and feeds that fail just now, for
    administrators. Not of the reference's interface: this server's."""
    permissions.require_administrator(call.state, call.user)
    feed_ids = {feed.id for feed in call.state.feeds}

    def read(
        connection: Connection,
    ) -> tuple[
        DeliveryFailure | None,
        list[DeliveryFailure],
        list[DeliveryFailure],
        dict[int, tuple[feeds.FeedStatus, float]],
    ]:
        return (
            failures.mails(connection),
            failures.pushes(connection, MOST_SHOWN),
            failures.services(connection, MOST_SHOWN),
            feeds.statuses(connection, feed_ids) if feed_ids else {},
        )

    mails, pushes, services, standings = await call.node.store.read(read)
    found = [] if mails is None else [_delivery("mail", mails, None)]
    for one in pushes:
        program = call.state.push_subscriptions.get(one.of)
        if program is not None:
            found.append(_delivery("push", one, program.user_id, program.name))
    found += [_delivery("webhook", one, one.of) for one in services if one.of in call.state.users]
    found += _of_feeds(call, standings)
    return FailingDeliveries(deliveries=found)


def _delivery(
    kind: Literal["mail", "push", "webhook"],
    one: DeliveryFailure,
    user_id: int | None,
    name: str = "",
) -> FailingDelivery:
    return FailingDelivery(
        kind=kind,
        user_id=user_id,
        name=name,
        waiting=one.waiting,
        since=one.since or None,
        reason=one.reason,
    )


def _of_feeds(
    call: Call, standings: dict[int, tuple[feeds.FeedStatus, float]]
) -> list[FailingDelivery]:
    found = []
    for feed_id, (standing, _) in standings.items():
        feed = call.state.feeds.get(feed_id)
        if feed is not None and standing.failures and standing.url == feed.url:
            found.append(
                FailingDelivery(
                    kind="feed",
                    user_id=feed.bot_id,
                    name=feed.url,
                    waiting=standing.failures,
                    since=standing.failing_since or None,
                    reason=standing.reason,
                )
            )
    found.sort(key=lambda one: one.since or 0.0)
    return found[:MOST_SHOWN]


class ExportObject(Struct, kw_only=True):
    """An export that was asked for."""

    id: int
    acting_user_id: int
    export_time: float
    deleted_timestamp: float | None
    failed_timestamp: float | None
    export_url: str | None
    pending: bool
    export_type: str


class Exports(ApiResponse, kw_only=True):
    """The exports that were asked for."""

    exports: list[ExportObject]


async def get_exports(call: Call, params: NoParams) -> Exports:
    """The exports of the organization, for administrators: none can be asked for here."""
    permissions.require_administrator(call.state, call.user)
    return Exports(exports=[])


class Export(Params, kw_only=True, frozen=True):
    """What of the organization's data is wanted."""

    export_type: Literal["public", "full_with_consent", "full_without_consent"] = "public"


async def export_realm(call: Call, params: Export) -> ApiResponse:
    """Refused always: whoever runs the server makes a copy of everything with
    `tertulia backup`."""
    permissions.require_administrator(call.state, call.user)
    raise Refused(
        "This server doesn't offer data exports. Its operator can create a backup with `tertulia"
        " backup`."
    )


class OneExport(Params, kw_only=True, frozen=True):
    """An export."""

    export_id: Annotated[Int, Path()]


async def delete_export(call: Call, params: OneExport) -> ApiResponse:
    """Delete an export, for administrators. There are none."""
    permissions.require_administrator(call.state, call.user)
    raise Refused("This export doesn't exist.")


class Consent(Struct, kw_only=True):
    """Whether somebody lets an export have what is private of theirs."""

    user_id: int
    consented: bool
    email_address_visibility: int


class Consents(ApiResponse, kw_only=True):
    """Everybody's consent, by user ID."""

    export_consents: list[Consent]


async def get_consents(call: Call, params: NoParams) -> Consents:
    """Who lets an export have what is private of theirs, for administrators."""
    permissions.require_administrator(call.state, call.user)
    state = call.state
    people = [user for user in state.users if user.is_active and not user.is_bot]
    return Consents(
        export_consents=[
            Consent(
                user_id=user.id,
                consented=state.settings[user.id].allow_private_data_export,
                email_address_visibility=int(state.settings[user.id].email_address_visibility),
            )
            for user in sorted(people, key=lambda user: user.id)
        ]
    )
