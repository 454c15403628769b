"""Presence: who is there."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tertulia.delivery.presence import OFFLINE_SECONDS
from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.model.transients import PresenceChanged
from tertulia.model.users import User
from tertulia.wire.call import Call, Node
from tertulia.wire.objects.users import api_email
from tertulia.wire.parameters import Params
from tertulia.wire.routing import Answer

DAY = 86400


class ReportPresence(Params, kw_only=True, frozen=True):
    """That the caller is there, and what to tell about others."""

    status: Literal["active", "idle"]
    last_update_id: Annotated[
        int | None,
        Meta(description="The latest presence_last_update_id, or -1. Asks for the modern format."),
    ] = None
    history_limit_days: Annotated[int, Meta(ge=0, le=36500)] = 14
    new_user_input: bool = False
    ping_only: bool = False
    slim_presence: Annotated[bool, Meta(description="The older way to ask for it.")] = False


class Presences(Answer, kw_only=True):
    """Who is there, by user ID (modern) or by address (legacy)."""

    presence_last_update_id: int
    server_timestamp: float | msgspec.UnsetType = msgspec.UNSET
    presences: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


async def report_presence(call: Call, params: ReportPresence) -> Presences:
    """Report that the caller is there, and fetch who else is."""
    user, state, presence = call.user, call.state, call.node.delivery.presence
    if user.is_bot:
        raise Refused("Bots have no presence.")
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
        presence_last_update_id=max(last, since) if modern or found else -1,
        server_timestamp=call.now,
        presences=found,
    )


def presences(
    node: Node, viewer: User, days: int, now: float, *, modern: bool, since: int = -1
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
        limited = node.config.can_access_all_users_group_limits_presence
        if limited and not permissions.sees_user(state, viewer, user, now):
            continue
        if modern:
            shown[str(user.id)] = {
                "active_timestamp": latest.active_at,
                "idle_timestamp": latest.idle_at,
            }
        else:
            shown[api_email(state, user, node.config.address_host)] = legacy(latest, now)
    return shown, presence.last_update_id


def legacy(latest: PresenceChanged, now: float) -> dict[str, Any]:
    """A presence in the form of old."""
    is_active = now - latest.active_at < OFFLINE_SECONDS
    detail = {
        "client": "website",
        "status": "active" if is_active else "idle",
        "timestamp": latest.active_at if is_active else latest.idle_at,
    }
    return {"aggregated": detail, "website": {**detail, "pushable": False}}
