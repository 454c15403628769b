"""Presence: who is active, idle, or offline."""

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
from tertulia.wire.api.users.objects import presence_email
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.parameters import Doc, Int, IntPath, TextPath
from tertulia.wire.http.responses import JsonParts, json_object, object_fields
from tertulia.wire.http.routing import ApiResponse, Call

DAY = 86400
DEFAULT_DAYS = 14


class PresencesResponse(ApiResponse, kw_only=True):
    """Presences by user ID (modern format) or email address (legacy format)."""

    presence_last_update_id: int
    server_timestamp: float | UnsetType = UNSET
    presences: dict[str, Any] | UnsetType = UNSET


async def report_presence(
    call: Call,
    status: Literal["active", "idle"],
    last_update_id: Annotated[
        Int | None,
        Doc("The latest `presence_last_update_id`, or -1. Selects the modern response format."),
    ] = None,
    history_limit_days: Annotated[int, Meta(ge=0, le=36500)] = DEFAULT_DAYS,
    new_user_input: Annotated[
        bool,
        Doc(
            "Whether the user interacted with the client since the last report. Counts daily"
            " active users."
        ),
    ] = False,
    ping_only: bool = False,
    slim_presence: Annotated[
        bool, Doc("Selects the modern response format, for older clients.")
    ] = False,
) -> PresencesResponse:
    """Report your presence, and get everyone else's."""
    user, state, presence = call.user, call.state, call.node.delivery.presence
    if user.is_bot:
        raise Refused("Bots don't have a presence.")
    if new_user_input:
        presence.used(user.id)
    settings = state.settings.get(user.id)
    if (settings is None or settings.presence_enabled) and not state.realm.presence_disabled:
        report = presence.report(user.id, active=status == "active")
        call.node.delivery.publish(report)
    since = -1 if last_update_id is None else last_update_id
    if ping_only:
        return PresencesResponse(presence_last_update_id=since)
    modern = last_update_id is not None or slim_presence
    days = history_limit_days if since <= 0 else 36500
    visible, last = presences(call.node, user, days, call.now, modern=modern, since=since)
    knows_last = visible or last_update_id is not None
    return PresencesResponse(
        presence_last_update_id=max(last, since) if knows_last else -1,
        server_timestamp=call.now,
        presences=visible,
    )


def presences(
    node: HttpNode, viewer: User, days: int, now: float, *, modern: bool, since: int = -1
) -> tuple[dict[str, Any], int]:
    """Return the presences of the last `days` days that the viewer can see, and the last update's
    ID.

    The ID is -1 if the organization has disabled presence. `since` is an update ID: only later ones
    are returned.
    """
    state, presence = node.state, node.delivery.presence
    if state.realm.presence_disabled:
        return {}, -1
    visible: dict[str, Any] = {}
    for latest in presence.since(since, now - days * DAY):
        user = state.users.get(latest.user_id)
        if user is None or not user.is_active:
            continue
        if node.config.can_access_all_users_group_limits_presence and not permissions.sees_user(
            state, viewer, user
        ):
            continue
        if modern:
            visible[str(user.id)] = _modern(latest)
        else:
            key = presence_email(state, viewer, user, node.config.address_host)
            visible[key] = legacy(latest, now)
    return visible, presence.last_update_id


def all_presences(node: HttpNode, viewer: User, days: int, now: float) -> tuple[JsonParts, int]:
    """Return the same as `presences` in the modern format, encoded as cached fragments."""
    state, presence = node.state, node.delivery.presence
    if state.realm.presence_disabled:
        return json_object(()), -1
    oldest = now - days * DAY

    def encode(user_ids: Sequence[int]) -> bytes:
        return object_fields(
            {
                str(user_id): _modern(latest)
                for user_id in user_ids
                if state.users[user_id].is_active
                and (latest := presence.of(user_id)) is not None
                and max(latest.active_at, latest.idle_at) >= oldest
            }
        )

    limited = node.config.can_access_all_users_group_limits_presence
    visible = json_object(
        node.fragments.get(
            ("presences", item.first, item.size),
            (item.version, presence.stamp(item.first, oldest)),
            partial(encode, item.ids),
        )
        for item in people.by_visibility(state, viewer)
        if not limited or item.kind is not people.AccountVisibility.UNKNOWN
    )
    return visible, presence.last_update_id


def _modern(latest: PresenceChanged) -> dict[str, int]:
    return {"active_timestamp": latest.active_at, "idle_timestamp": latest.idle_at}


def legacy(latest: PresenceChanged, now: float) -> dict[str, Any]:
    """A presence in the legacy format."""
    is_active = now - latest.active_at < OFFLINE_SECONDS
    detail = {
        "client": "website",
        "status": "active" if is_active else "idle",
        "timestamp": latest.active_at if is_active else latest.idle_at,
    }
    return {"aggregated": detail, "website": {**detail, "pushable": False}}


def follow_settings(node: HttpNode, user_id: int, *, is_present: bool) -> None:
    """Hide the account's presence if its setting says so. Otherwise show it as active if it
    `is_present`."""
    settings, presence = node.state.settings[user_id], node.delivery.presence
    if node.state.realm.presence_disabled or node.state.users[user_id].is_bot:
        return
    if not settings.presence_enabled:
        hidden = presence.hide(user_id)
        if hidden is not None:
            node.delivery.publish(hidden)
    elif is_present:
        node.delivery.publish(presence.report(user_id, active=True))


class PresenceState(Struct, kw_only=True):
    """`active`, `idle`, or (only aggregated) `offline`, and when the user was last active or idle,
    in UNIX seconds."""

    status: str
    timestamp: int


class UserPresence(Struct, kw_only=True):
    """When a user was last seen, in the legacy and the modern format. Times are in UNIX seconds."""

    aggregated: PresenceState
    website: PresenceState
    active_timestamp: int
    idle_timestamp: int


class PresenceResponse(ApiResponse, kw_only=True):
    """A user's presence."""

    presence: UserPresence


async def get_presence(call: Call, user_id: IntPath) -> PresenceResponse:
    """Get a user's presence."""
    return _presence_of(call, user_id)


async def get_presence_by_email(call: Call, email: TextPath) -> PresenceResponse:
    """Get the presence of a user by their email address."""
    user = call.account_with(email)
    return _presence_of(call, user.id if user else None)


def _presence_of(call: Call, user_id: int | None) -> PresenceResponse:
    user = permissions.visible_user(call.state, call.user, user_id)
    if user.is_bot:
        raise Refused("Bots don't have a presence.")
    latest = call.node.delivery.presence.of(user.id)
    if latest is None or not user.is_active or call.state.realm.presence_disabled:
        raise Refused("No presence information is available for this account.")
    is_active = call.now - latest.active_at < OFFLINE_SECONDS
    timestamp = latest.active_at if is_active else latest.idle_at
    is_online = call.now - timestamp < OFFLINE_SECONDS
    status = "active" if is_active else "idle"
    return PresenceResponse(
        presence=UserPresence(
            aggregated=PresenceState(
                status=status if is_online else "offline", timestamp=timestamp
            ),
            website=PresenceState(status=status, timestamp=timestamp),
            active_timestamp=latest.active_at,
            idle_timestamp=latest.idle_at,
        )
    )


class RealmPresencesResponse(ApiResponse, kw_only=True):
    """Recent presences by email address."""

    presences: dict[str, Any]
    server_timestamp: float


async def get_realm_presence(call: Call) -> RealmPresencesResponse:
    """Get everyone's presence in the last two weeks."""
    visible, _ = presences(call.node, call.user, DEFAULT_DAYS, call.now, modern=False)
    return RealmPresencesResponse(presences=visible, server_timestamp=call.now)


def presence_section(context: SectionContext) -> dict[str, Any]:
    """Presence in the last days; empty for spectators."""
    registration = context.registration
    modern = registration.slim_presence or registration.capabilities.simplified_presence_events
    visible: JsonParts | dict[str, Any] = {}
    last, viewer, days = -1, context.viewer, context.presence_days
    if viewer is not None and modern:
        visible, last = all_presences(context.node, viewer, days, context.now)
    elif viewer is not None:
        visible, last = presences(context.node, viewer, days, context.now, modern=False)
    return {
        "presences": visible if days else {},
        "presence_last_update_id": last,
        "server_timestamp": context.now,
    }


SECTIONS: Final[Sections] = {("presence",): presence_section}
