"""User statuses."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import personal
from tertulia.domain.accounts.personal import NewStatus
from tertulia.model.changes import StatusChanged
from tertulia.model.reactions import Emoji
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.emoji import REACTION_TYPES, TYPE_OF
from tertulia.wire.api.events import Event
from tertulia.wire.api.presence import follow_settings
from tertulia.wire.api.projection import ProjectionContext, Projections, to_everybody
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.users.objects import AccountVisibility, by_visibility
from tertulia.wire.api.visibility import sees_account
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params
from tertulia.wire.http.responses import json_object, object_fields
from tertulia.wire.http.routing import ApiResponse, Call


def emoji_fields(emoji: Emoji) -> dict[str, str]:
    """Return an emoji's name, code, and type. Name and code are empty for NO_EMOJI."""
    return {
        "emoji_name": emoji.name,
        "emoji_code": emoji.code,
        "reaction_type": TYPE_OF[emoji.kind],
    }


def status_object(state: State, user: User) -> dict[str, Any]:
    """Return the user's status, without fields that aren't set."""
    fields: dict[str, Any] = {}
    status = state.statuses.get(user.id)
    if status is not None and status.text:
        fields["status_text"] = status.text
    if status is not None and status.emoji is not None:
        fields |= emoji_fields(status.emoji)
    if status is not None and status.ends_at:
        fields["scheduled_end_time"] = status.ends_at
    settings = state.settings.get(user.id)
    if settings is not None and not settings.presence_enabled:
        fields["away"] = True
    return fields


class UserStatusEvent(Event, kw_only=True, tag="user_status"):
    """A user's status changed. Only changed fields are included. The emoji's three fields are set
    together; its name and code are empty if it was removed. `scheduled_end_time` is when the status
    ends (null if it doesn't), and is a Tertulia extension. `away` is deprecated, and tells whether
    the user is invisible."""

    user_id: int
    status_text: str | UnsetType = UNSET
    emoji_name: str | UnsetType = UNSET
    emoji_code: str | UnsetType = UNSET
    reaction_type: str | UnsetType = UNSET
    scheduled_end_time: int | UnsetType | None = UNSET
    away: bool | UnsetType = UNSET


def status_now(state: State, user: User) -> UserStatusEvent:
    """Return the complete status of an account that has become visible."""
    return UserStatusEvent(user_id=user.id, **status_object(state, user))


def _event(_: ProjectionContext, change: StatusChanged) -> UserStatusEvent:
    event = UserStatusEvent(user_id=change.user_id)
    if change.text is not None:
        event.status_text = change.text
    if change.emoji is not None:
        event = msgspec.structs.replace(event, **emoji_fields(change.emoji))
    if change.ends_at is not None:
        event.scheduled_end_time = change.ends_at or None
    return event


ReactionType = Literal[
    "", "unicode_emoji", "realm_emoji", "zulip_extra_emoji", "service_extra_emoji"
]


class _Status(Params, kw_only=True, frozen=True):
    status_text: Annotated[str | None, Doc("Empty to remove the text.")] = None
    emoji_name: Annotated[str | None, Doc("Empty to remove the emoji.")] = None
    emoji_code: str | None = None
    reaction_type: ReactionType | None = None
    scheduled_end_time: Annotated[
        Int | None,
        Doc(
            "When the status is cleared: a UNIX time within a year, or 0 for never. By default, a"
            " new status isn't cleared. This parameter is a Tertulia extension."
        ),
    ] = None


class UpdateOwnStatus(_Status, kw_only=True, frozen=True):
    away: Annotated[
        bool | None, Doc("Deprecated: the opposite of the setting `presence_enabled`.")
    ] = None


class UpdateStatus(_Status, kw_only=True, frozen=True):
    user_id: IntPath


async def update_own_status(call: Call, params: UpdateOwnStatus) -> None:
    """Set your status."""
    presence_changed = await call.submit(
        personal.change_own_status, _new_status(params, away=params.away)
    )
    if presence_changed:
        follow_settings(call.node, call.user.id, is_present=True)


async def update_status(call: Call, params: UpdateStatus) -> None:
    """Set another user's status. Requires an administrator."""
    await call.submit(personal.change_status, params.user_id, _new_status(params))


def _new_status(params: _Status, *, away: bool | None = None) -> NewStatus:
    return NewStatus(
        text=params.status_text,
        emoji_name=params.emoji_name,
        emoji_code=params.emoji_code,
        emoji_kind=REACTION_TYPES.get(params.reaction_type or ""),
        ends_at=params.scheduled_end_time,
        invisible=away,
    )


class StatusObject(Struct, kw_only=True):
    """A user's status, without fields that aren't set."""

    status_text: str | UnsetType = UNSET
    emoji_name: str | UnsetType = UNSET
    emoji_code: str | UnsetType = UNSET
    reaction_type: str | UnsetType = UNSET
    scheduled_end_time: int | UnsetType = UNSET
    away: bool | UnsetType = UNSET


class StatusResponse(ApiResponse, kw_only=True):
    """A user's status."""

    status: StatusObject


async def get_status(call: Call, user_id: IntPath) -> StatusResponse:
    """Get a user's status."""
    user = permissions.visible_user(call.state, call.user, user_id)
    return StatusResponse(status=StatusObject(**status_object(call.state, user)))


def status_section(context: SectionContext) -> dict[str, Any]:
    """The statuses that people have set; empty for spectators."""
    state, viewer = context.state, context.viewer
    if viewer is None:
        return {"user_status": {}}

    def statuses_of(user_ids: Iterable[int]) -> bytes:
        statuses = {
            str(user_id): status_object(state, state.users[user_id]) for user_id in user_ids
        }
        return object_fields({user_id: status for user_id, status in statuses.items() if status})

    return {
        "user_status": json_object(
            context.node.fragments.get(
                ("user_status", item.first, item.size), item.version, partial(statuses_of, item.ids)
            )
            for item in by_visibility(state, viewer)
            if item.kind is not AccountVisibility.UNKNOWN
        )
    }


SECTIONS: Final[Sections] = {("user_status",): status_section}


PROJECTIONS: Final[Projections] = (to_everybody(StatusChanged, _event, only_if=sees_account),)
