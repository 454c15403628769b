"""What people say that they are doing."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import statuses
from tertulia.domain.accounts.statuses import NewStatus
from tertulia.wire.api.objects.reactions import REACTION_TYPES
from tertulia.wire.api.objects.statuses import status_object
from tertulia.wire.api.resources.presence import follow_settings
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer

ReactionType = Literal[
    "", "unicode_emoji", "realm_emoji", "zulip_extra_emoji", "service_extra_emoji"
]


class _Status(Params, kw_only=True, frozen=True):
    """What is to be new; what is not sent stays as it is."""

    status_text: Annotated[str | None, Meta(description="Empty takes it away.")] = None
    emoji_name: Annotated[
        str | None, Meta(description="Empty takes the emoji away, with its code and type.")
    ] = None
    emoji_code: str | None = None
    reaction_type: ReactionType | None = None
    scheduled_end_time: Annotated[
        Int | None,
        Meta(
            description="When the status is taken away: a UNIX time within a year, 0 for never."
            " Where it is not sent, a new status stays. Not of the reference's interface: this"
            " server's."
        ),
    ] = None


class UpdateOwnStatus(_Status, kw_only=True, frozen=True):
    """The caller's own status."""

    away: Annotated[
        bool | None, Meta(description="Of old: the opposite of the setting presence_enabled.")
    ] = None


class UpdateStatus(_Status, kw_only=True, frozen=True):
    """Somebody else's status."""

    user_id: Annotated[Int, Path()]


async def update_own_status(call: Call, params: UpdateOwnStatus) -> Answer:
    """Say what one is doing."""
    presence_is_new = await call.submit(statuses.change_own, _new(params, away=params.away))
    if presence_is_new:
        follow_settings(call.node, call.user.id, is_here=True)
    return Answer()


async def update_status(call: Call, params: UpdateStatus) -> Answer:
    """Say what somebody else is doing, for administrators."""
    await call.submit(statuses.change, params.user_id, _new(params))
    return Answer()


def _new(params: _Status, *, away: bool | None = None) -> NewStatus:
    return NewStatus(
        text=params.status_text,
        emoji_name=params.emoji_name,
        emoji_code=params.emoji_code,
        emoji_kind=REACTION_TYPES.get(params.reaction_type or ""),
        ends_at=params.scheduled_end_time,
        invisible=away,
    )


class StatusObject(Struct, kw_only=True):
    """What somebody says that they are doing, without what is not set."""

    status_text: str | UnsetType = UNSET
    emoji_name: str | UnsetType = UNSET
    emoji_code: str | UnsetType = UNSET
    reaction_type: str | UnsetType = UNSET
    scheduled_end_time: int | UnsetType = UNSET
    away: bool | UnsetType = UNSET


class OneStatus(Answer, kw_only=True):
    """An account's status."""

    status: StatusObject


class GetStatus(Params, kw_only=True, frozen=True):
    """Whose status."""

    user_id: Annotated[Int, Path()]


async def get_status(call: Call, params: GetStatus) -> OneStatus:
    """What somebody says that they are doing."""
    user = permissions.visible_user(call.state, call.user, params.user_id)
    return OneStatus(status=StatusObject(**status_object(call.state, user)))
