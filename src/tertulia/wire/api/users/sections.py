"""The accounts in the initial data that POST /register returns."""

from collections.abc import Callable
from heapq import nlargest
from operator import attrgetter
from typing import Any, Final

from tertulia.domain import permissions
from tertulia.domain.accounts import access_keys
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.model.users import Role, User
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.users import objects
from tertulia.wire.api.users.objects import (
    UNKNOWN_AVATAR,
    UserFormat,
    UserObject,
    api_email,
    user_object,
)
from tertulia.wire.http.responses import JsonParts, json_array

MAX_CONVERSATIONS: Final = 250
"""The number of the viewer's newest direct conversations whose participants are in a limited list
of accounts."""
MAX_PARTICIPANTS: Final = 1000
"""Conversations that would exceed this number of accounts in total are skipped."""


def accounts(context: SectionContext) -> dict[str, Any]:
    """Return the accounts that the viewer can see, and the viewer's own. If there are more than the
    client wants, return only the most important ones."""
    state, viewer = context.state, context.viewer
    if viewer is not None and viewer.reach is not None:
        return _reached(context, viewer)
    ranges = objects.by_visibility(state, viewer)
    form = UserFormat(
        client_gravatar=context.registration.client_gravatar,
        with_profile=viewer is not None,
        with_activity=False,
    )

    def encoded(
        which: Callable[[User], bool], form: UserFormat, *, with_stand_ins: bool
    ) -> JsonParts:
        users = objects.encoded_users(
            context.node.fragments,
            state,
            viewer,
            ranges,
            which,
            form,
            context.host,
            with_stand_ins=with_stand_ins,
        )
        return json_array(users)

    if context.has_more_accounts:
        listed = _most_important(context, form)
    else:
        stand_ins = not context.registration.capabilities.user_list_incomplete
        listed = {
            "realm_users": encoded(objects.active, form, with_stand_ins=stand_ins),
            "realm_non_active_users": encoded(objects.deactivated, form, with_stand_ins=False),
        }
    bots = encoded(objects.system_bot, form._replace(with_activity=True), with_stand_ins=False)
    return {
        **listed,
        "cross_realm_bots": bots,
        **(_SPECTATOR if viewer is None else _own(context, viewer)),
    }


def _reached(context: SectionContext, viewer: User) -> dict[str, Any]:
    """Return the accounts that the viewer's limited access key reaches."""
    state, host = context.state, context.host
    form = UserFormat(
        client_gravatar=context.registration.client_gravatar, with_profile=True, with_activity=False
    )

    def objects_of(which: Callable[[User], bool]) -> list[UserObject]:
        return [user_object(state, viewer, user, host, form) for user in people if which(user)]

    people = access_keys.visible_users(state, viewer)
    bots = (state.users[user_id] for user_id in sorted(state.users.bots))
    form_of_bots = form._replace(with_activity=True)
    return {
        "realm_users": objects_of(objects.active),
        "realm_non_active_users": objects_of(objects.deactivated),
        "cross_realm_bots": [
            user_object(state, viewer, bot, host, form_of_bots) for bot in bots if bot.is_system_bot
        ],
        **_own(context, viewer),
    }


def _most_important(context: SectionContext, form: UserFormat) -> dict[str, Any]:
    """Return the viewer, and the participants of their newest direct conversations."""
    state, viewer = context.state, context.viewer
    ids: set[int] = set()
    if viewer is not None:
        conversations = (state.directs[direct_id] for direct_id in state.directs.of_user[viewer.id])
        ids = {viewer.id}
        for conversation in nlargest(
            MAX_CONVERSATIONS, conversations, key=attrgetter("last_message_id")
        ):
            if len(ids) + len(conversation.members) <= MAX_PARTICIPANTS:
                ids.update(conversation.members)
    users = [
        user
        for user in (state.users[user_id] for user_id in sorted(ids))
        if viewer is not None and permissions.sees_user(state, viewer, user)
    ]

    def objects_of(which: Callable[[User], bool]) -> list[UserObject]:
        return [
            user_object(state, viewer, user, context.host, form) for user in users if which(user)
        ]

    return {
        "realm_users": objects_of(objects.active),
        "realm_non_active_users": objects_of(objects.deactivated),
        "realm_users_incomplete": True,
    }


def _own(context: SectionContext, viewer: User) -> dict[str, Any]:
    """Return the viewer's account and permissions."""
    state, realm = context.state, context.state.realm

    def may(setting: Any) -> bool:
        return permissions.holds_as_member(state, viewer, setting)

    may_private = may(realm.can_create_private_channel_group)
    may_public = may(realm.can_create_public_channel_group)
    return {
        "user_id": viewer.id,
        "email": api_email(state, viewer, context.host),
        "delivery_email": viewer.address,
        "full_name": viewer.full_name,
        "avatar_source": viewer.avatar_source,
        "avatar_url": full_avatar_url(viewer, sees_address=True),
        "avatar_url_medium": full_avatar_url(viewer, sees_address=True, medium=True),
        "is_owner": viewer.is_owner,
        "is_admin": viewer.is_administrator,
        "is_moderator": viewer.role <= Role.MODERATOR,
        "is_guest": viewer.is_guest,
        "can_create_private_streams": may_private,
        "can_create_public_streams": may_public,
        "can_create_streams": may_private or may_public,
        "can_create_web_public_streams": context.node.admits_spectators
        and may(realm.can_create_web_public_channel_group),
        "can_invite_others_to_realm": may(realm.can_invite_users_group),
        "can_subscribe_other_users": may(realm.can_add_subscribers_group),
    }


_SPECTATOR: Final[dict[str, Any]] = {
    "user_id": 0,
    "email": "",
    "delivery_email": "",
    "full_name": "",
    "avatar_source": "G",
    "avatar_url": UNKNOWN_AVATAR,
    "avatar_url_medium": UNKNOWN_AVATAR,
    "is_owner": False,
    "is_admin": False,
    "is_moderator": False,
    "is_guest": True,
    "can_create_private_streams": False,
    "can_create_public_streams": False,
    "can_create_streams": False,
    "can_create_web_public_streams": False,
    "can_invite_others_to_realm": False,
    "can_subscribe_other_users": False,
}
"""The account fields of a spectator. No account has the ID 0."""


SECTIONS: Final[Sections] = {("realm_user",): accounts}
