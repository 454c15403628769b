"""Deactivating and reactivating accounts."""

from typing import Any

import msgspec
from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts import (
    admission,
    full_members,
    signing_out,
    users,
)
from tertulia.model.changes import (
    AnyChange,
    IdentityRevised,
    UserDeactivated,
    UserReactivated,
)
from tertulia.model.errors import Refused
from tertulia.model.groups import Members
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Named, NewApiKey, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


def deactivate(
    context: CommandContext, user_id: int, comment: str | None = None, site: str = ""
) -> Decision[None]:
    """Deactivate the actor's account, or one that the actor manages, and its bots. This ends its
    invitations, sessions, and access keys.

    If `comment` is given, even an empty one, the person gets an email; `site` is the server's URL.
    Raise LastOfKind for the last owner; Refused for unknown accounts, accounts that the actor can't
    deactivate, and deactivated ones.
    """
    state, actor = context.state, context.actor
    is_own = user_id == actor.id and not actor.is_bot
    target = actor if is_own else users.managed_user(context, user_id)
    if not target.is_active:
        raise Refused("This account is already deactivated.")
    if target.is_owner and not target.is_bot:
        users.require_another_owner(state, target)
    mails: list[Mail] = []
    if comment is not None:
        mails = users.emails_to(MailKind.DEACTIVATED, target, site, comment=comment.strip())
    return Decision(
        None,
        [
            *(
                deactivation_change(context, user)
                for user in [target, *state.users.bots_of(target.id)]
            ),
            *signing_out.all_session_end_changes(state, target.id),
            *signing_out.access_key_end_changes(state, target.id),
            *signing_out.push_end_changes(state, target.id),
            *admission.invitation_withdrawal_changes(state, target),
        ],
        mails,
    )


def deactivation_change(context: CommandContext, user: User) -> UserDeactivated:
    """Return the change that deactivates the account."""
    return UserDeactivated(**_belongings(context, user))


def reactivation_change(context: CommandContext, user: User) -> UserReactivated:
    """Return the change that reactivates the account."""
    return UserReactivated(**_belongings(context, user))


def _belongings(context: CommandContext, user: User) -> dict[str, Any]:
    """Return the fields that deactivating and reactivating changes have in common: the records that
    refer to the account."""
    state = context.state
    group_ids, named = state.memberships.groups_of(user), _named(state, user)
    concerned = {*group_ids, *(group_id for group_id, _ in named.groups)}
    return {
        "user_id": user.id,
        "channel_ids": tuple(sorted(state.channel_ids_of(user.id))),
        "group_ids": group_ids,
        "named": named,
        "deactivated_groups": tuple(sorted(g for g in concerned if state.groups[g].deactivated)),
    }


def _named(state: State, user: User) -> Named:
    return Named(
        channels=tuple((c.id, name) for c in state.channels for name in _settings_naming(c, user)),
        groups=tuple((g.id, name) for g in state.groups for name in _settings_naming(g, user)),
        realm=tuple(_settings_naming(state.realm, user)),
    )


def _settings_naming(record: Struct, user: User) -> list[str]:
    """Return the names of the record's permission settings that include the account."""
    return [
        name
        for name in record.__struct_fields__
        if isinstance(holder := getattr(record, name), Members) and user.id in holder.direct_members
    ]


def reactivate(context: CommandContext, user_id: int, key: NewApiKey) -> Decision[None]:
    """Reactivate a deactivated account that the actor manages. It gets a new API key, which
    invalidates the old one. A bot without an active owner becomes the actor's.

    Raise Refused for unknown accounts, accounts that the actor can't reactivate, a taken name that
    must be unique, and bots that the actor can't own.
    """
    state, now = context.state, context.now
    target = users.managed_user(context, user_id)
    if target.is_active:
        return Decision(None)
    if target.is_deleted:
        raise Refused("This account is deleted.")
    first = full_members.overdue_changes(state, target, now)
    ahead = msgspec.structs.replace(context, state=full_members.with_changes(state, first))
    changes: list[AnyChange] = [
        *users.key_changes(state, target.id, key),
        *first,
        reactivation_change(ahead, target),
        *(
            IdentityRevised(identity=msgspec.structs.replace(identity, is_gone=False))
            for identity in state.identities.of_user[target.id]
            if identity.is_gone
        ),
    ]
    if target.bot is None:
        users.free_name(state, target.full_name, target.id)
        return Decision(None, changes)
    users.require_person(context.actor)
    permissions.require(
        permissions.may_create_bot(state, context.actor, target.bot.kind),
        "You don't have permission to have this type of bot.",
    )
    users.free_bot_name(state, target.full_name, target.id)
    owner = state.users.get(target.bot.owner_id)
    if owner is None or not owner.is_active:
        bot = msgspec.structs.replace(target.bot, owner_id=context.actor.id)
        changes += users.account_changes(context, target, {"bot": bot})
    return Decision(None, changes)
