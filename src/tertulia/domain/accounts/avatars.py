"""Profile pictures."""

from typing import Any

from tertulia.domain import permissions
from tertulia.domain.accounts import users
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision


def check_own(context: CommandContext) -> Decision[None]:
    """Raise Refused if the actor can't change their own picture."""
    permissions.require(
        permissions.is_administrator(context.state, context.actor)
        or not context.state.realm.avatar_changes_disabled,
        "This organization doesn't allow people to change their profile picture. Ask an"
        " administrator to change it.",
    )
    return Decision(None)


def change_own(context: CommandContext, file: str | None) -> Decision[str]:
    """Give the actor the uploaded picture with that name, or (None) the default one. Return the
    name of the previous uploaded one, or an empty string. Raise as `check_own`."""
    check_own(context)
    actor = context.actor
    if file is None and not actor.avatar_file:
        return Decision("")
    return Decision(
        actor.avatar_file, users.changed(context, actor, replaced(context, actor, file))
    )


def replaced(context: CommandContext, user: User, file: str | None) -> dict[str, Any]:
    """Return the changed fields of an account with another picture, as in `change_own`."""
    return {
        "avatar_source": context.state.realm.default_avatar_source if file is None else "U",
        "avatar_file": file or "",
        "avatar_version": user.avatar_version + 1,
    }
