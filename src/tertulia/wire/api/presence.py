"""Presence: who is there."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.delivery.presence import OFFLINE_SECONDS
from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.model.transients import PresenceChanged
from tertulia.model.users import User
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.users import objects as people
from tertulia.wire.api.users.objects import presence_key
from tertulia.wire.http.fragments import JsonParts, json_object, object_fields
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call

DAY = 86400
DEFAULT_DAYS = 14


class ReportPresence(Params, kw_only=True, frozen=True):
    """That the caller is there, and what to tell about others."""

    status: Literal["active", "idle"]
    last_update_id: Annotated[
        Int | None,
        Meta(description="The latest presence_last_update_id, or -1. Asks for the modern format."),
    ] = None
    history_limit_days: Annotated[int, Meta(ge=0, le=36500)] = DEFAULT_DAYS
    new_user_input: Annotated[
        bool, Meta(description="Since the last report. Counted by the day, for `tertulia usage`.")
    ] = False
    ping_only: bool = False
    slim_presence: Annotated[bool, Meta(description="The older way to ask for it.")] = False


class Presences(ApiResponse, kw_only=True):
    """Who is there, by user ID (modern) or by address (legacy)."""

    presence_last_update_id: int
    server_timestamp: float | UnsetType = UNSET
    presences: dict[str, Any] | UnsetType = UNSET


async def report_presence(call: Call, params: ReportPresence) -> Presences:
    """Report that the caller is there, and fetch who else is."""
    user, state, presence = call.user, call.state, call.node.delivery.presence
    if user.is_bot:
        raise Refused("Bots don't have a presence.")
    if params.new_user_input:
        presence.used(user.id)
    settings = state.settings.get(user.id)
    if (settings is None or settings.presence_enabled) and not state.realm.presence_disabled:
        report = presence.report(user.id, active=params.status == "active")
        call.node.delivery.publish(report)
    asked = params.last_update_id
    if params.ping_only:
        return Presences(presence_last_update_id=-1 if asked is None else asked)
    modern = asked is not None or params.slim_presence
    since = -1 if asked is None else asked
    days = params.history_limit_days if since <= 0 else 36500
    found, last = presences(call.node, user, days, call.now, modern=modern, since=since)
    return Presences(
        presence_last_update_id=max(last, since) if found or asked is not None else -1,
        server_timestamp=call.now,
        presences=found,
    )


def presences(
    node: HttpNode, viewer: User, days: int, now: float, *, modern: bool, since: int = -1
) -> tuple[dict[str, Any], int]:
    """Who was there in so many days, as far as the viewer may know, and the last update's ID (-1
    where presence is off)."""
    state, presence = node.state, node.delivery.presence
    if state.realm.presence_disabled:
        return {}, -1
    shown: dict[str, Any] = {}
    for latest in presence.since(since, now - days * DAY):
        user = state.users.get(latest.user_id)
        if user is None or not user.is_active:
            continue
        if node.config.can_access_all_users_group_limits_presence and not permissions.sees_user(
            state, viewer, user
        ):
            continue
        if modern:
            shown[str(user.id)] = _modern(latest)
        else:
            shown[presence_key(state, viewer, user, node.config.address_host)] = legacy(latest, now)
    return shown, presence.last_update_id


def all_presences(node: HttpNode, viewer: User, days: int, now: float) -> tuple[JsonParts, int]:
    """The same, in the modern format and in fragments."""
    state, presence = node.state, node.delivery.presence
    if state.realm.presence_disabled:
        return json_object(()), -1
    oldest = now - days * DAY

    def made(user_ids: Sequence[int]) -> bytes:
        active = (user_id for user_id in user_ids if state.users[user_id].is_active)
        found = ((user_id, presence.of(user_id)) for user_id in active)
        return object_fields(
            {
                str(user_id): _modern(latest)
                for user_id, latest in found
                if latest is not None and max(latest.active_at, latest.idle_at) >= oldest
            }
        )

    limited = node.config.can_access_all_users_group_limits_presence
    shown = json_object(
        node.fragments.get(
            ("presences", one.first, one.size),
            (one.version, presence.stamp(one.first, oldest)),
            partial(made, one.ids),
        )
        for one in people.by_visibility(state, viewer)
        if not limited or one.kind is not people.AccountVisibility.UNKNOWN
    )
    return shown, presence.last_update_id


def _modern(latest: PresenceChanged) -> dict[str, int]:
    return {"active_timestamp": latest.active_at, "idle_timestamp": latest.idle_at}


def legacy(latest: PresenceChanged, now: float) -> dict[str, Any]:
    """A presence in the form of old."""
    is_active = now - latest.active_at < OFFLINE_SECONDS
    detail = {
        "client": "website",
        "status": "active" if is_active else "idle",
        "timestamp": latest.active_at if is_active else latest.idle_at,
    }
    return {"aggregated": detail, "website": {**detail, "pushable": False}}


def follow_settings(node: HttpNode, user_id: int, *, is_here: bool) -> None:
    """Let the presence be as the account's setting says now: gone, or seen where it `is_here`."""
    settings, presence = node.state.settings[user_id], node.delivery.presence
    if node.state.realm.presence_disabled or node.state.users[user_id].is_bot:
        return
    if not settings.presence_enabled:
        hidden = presence.hide(user_id)
        if hidden is not None:
            node.delivery.publish(hidden)
    elif is_here:
        node.delivery.publish(presence.report(user_id, active=True))


# One account's


class PresenceState(Struct, kw_only=True):
    """`active`, `idle` or `offline`, and since when. UNIX seconds."""

    status: str
    timestamp: int


class UserPresence(Struct, kw_only=True):
    """When somebody was last there, in the forms of old and of now. UNIX seconds."""

    aggregated: PresenceState
    website: PresenceState
    active_timestamp: int
    idle_timestamp: int


class OnePresence(ApiResponse, kw_only=True):
    """An account's presence."""

    presence: UserPresence


class GetPresence(Params, kw_only=True, frozen=True):
    """Whose presence."""

    user_id: Annotated[Int, Path()]


class GetPresenceByEmail(Params, kw_only=True, frozen=True):
    """Whose presence, by address."""

    email: Annotated[str, Path()]


async def get_presence(call: Call, params: GetPresence) -> OnePresence:
    """When somebody was last there."""
    return _presence_of(call, params.user_id)


async def get_presence_by_email(call: Call, params: GetPresenceByEmail) -> OnePresence:
    """When somebody named by their address was last there."""
    user = call.account_with(params.email)
    return _presence_of(call, user.id if user else None)


def _presence_of(call: Call, user_id: int | None) -> OnePresence:
    user = permissions.visible_user(call.state, call.user, user_id)
    if user.is_bot:
        raise Refused("Bots don't have a presence.")
    latest = call.node.delivery.presence.of(user.id)
    if latest is None or not user.is_active or call.state.realm.presence_disabled:
        raise Refused("No presence information is available for this account.")
    is_active = call.now - latest.active_at < OFFLINE_SECONDS
    timestamp = latest.active_at if is_active else latest.idle_at
    is_there = call.now - timestamp < OFFLINE_SECONDS
    status = "active" if is_active else "idle" if is_there else "offline"
    told = PresenceState(status=status, timestamp=timestamp)
    return OnePresence(
        presence=UserPresence(
            aggregated=told,
            website=told,
            active_timestamp=latest.active_at,
            idle_timestamp=latest.idle_at,
        )
    )


class RealmPresences(ApiResponse, kw_only=True):
    """Who was there of late, by address."""

    presences: dict[str, Any]
    server_timestamp: float


async def get_realm_presence(call: Call, params: NoParams) -> RealmPresences:
    """Who was there in the last two weeks."""
    found, _ = presences(call.node, call.user, DEFAULT_DAYS, call.now, modern=False)
    return RealmPresences(presences=found, server_timestamp=call.now)


def presence_section(context: SectionContext) -> dict[str, Any]:
    """Presence in the last days; empty for spectators."""
    registration = context.registration
    modern = registration.slim_presence or registration.capabilities.simplified_presence_events
    shown: JsonParts | dict[str, Any] = {}
    last, viewer, days = -1, context.viewer, context.presence_days
    if viewer is not None and modern:
        shown, last = all_presences(context.node, viewer, days, context.now)
    elif viewer is not None:
        shown, last = presences(context.node, viewer, days, context.now, modern=False)
    return {
        "presences": shown if days else {},
        "presence_last_update_id": last,
        "server_timestamp": context.now,
    }


SECTIONS: Final[Sections] = {("presence",): presence_section}
