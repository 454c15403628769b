"""Not wanting to read somebody's messages."""

from tertulia.domain import permissions
from tertulia.model.changes import UserMuted, UserUnmuted
from tertulia.model.errors import Refused
from tertulia.model.personal import MutedUser
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State


def mute(moment: Moment, user_id: int) -> Decision[None]:
    """Mute a user. Refused for oneself, unknown users, and users who are muted already."""
    state, actor = moment.state, moment.actor
    user = permissions.visible_user(state, actor, user_id)
    if user.id == actor.id:
        raise Refused("You can't mute yourself.")
    if (actor.id, user.id) in state.muted_users:
        raise Refused("This user is already muted.")
    muted = MutedUser(user_id=actor.id, muted_id=user.id, since=int(moment.now))
    return Decision(None, (UserMuted(muted=muted),))


def unmute(moment: Moment, user_id: int) -> Decision[None]:
    """Unmute a user. Refused where the user is not muted."""
    actor = moment.actor
    if (actor.id, user_id) not in moment.state.muted_users:
        raise Refused("This user isn't muted.")
    return Decision(None, (UserUnmuted(user_id=actor.id, muted_id=user_id),))


def kept_apart(state: State, user_id: int) -> set[int]:
    """The users whom this one muted, and the users who muted this one."""
    return {muted.muted_id for muted in state.muted_users.of_user[user_id]} | {
        muted.user_id for muted in state.muted_users.of_muted[user_id]
    }
