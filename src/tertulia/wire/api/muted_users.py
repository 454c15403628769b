"""Muted users."""

from typing import Final

from msgspec import Struct, convert, field

from tertulia.domain.accounts import personal
from tertulia.model.changes import UserMuted, UserUnmuted
from tertulia.service.messages import flags
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, to_owner
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import IntPath
from tertulia.wire.http.routing import Call


class MutedUserObject(Struct, kw_only=True):
    """A user whom you muted, and when."""

    muted_id: int = field(name="id")
    since: int = field(name="timestamp")


def muted_users(state: State, user_id: int) -> list[MutedUserObject]:
    """Return the users whom the account has muted."""
    muted = list(state.muted_users.of_user[user_id])
    return convert(muted, list[MutedUserObject], from_attributes=True)


class MutedUsersEvent(Event, kw_only=True, tag="muted_users"):
    """Your muted users changed. Contains all of them."""

    muted_users: list[MutedUserObject]


async def mute_user(call: Call, muted_user_id: IntPath) -> None:
    """Mute a user. Their past and future messages count as read."""
    await flags.mute_user(call, muted_user_id)


async def unmute_user(call: Call, muted_user_id: IntPath) -> None:
    """Unmute a user. Messages that count as read stay read."""
    await call.submit(personal.unmute_user, muted_user_id)


def _event(context: ProjectionContext, change: UserMuted | UserUnmuted) -> Event:
    return MutedUsersEvent(muted_users=muted_users(context.state, change.user_id))


SECTIONS: Final[Sections] = {
    ("muted_users",): lambda context: {
        "muted_users": muted_users(context.state, context.viewer_id) if context.viewer else []
    }
}


PROJECTIONS: Final[Projections] = (to_owner(UserMuted, _event), to_owner(UserUnmuted, _event))
