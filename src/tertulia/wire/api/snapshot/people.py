"""Accounts, groups, and who is there."""

from collections.abc import Callable, Iterable
from functools import partial
from heapq import nlargest
from operator import attrgetter
from typing import Any, Final

from tertulia.domain import permissions
from tertulia.model.users import Role, User
from tertulia.wire.api.bots import bot_objects
from tertulia.wire.api.groups.objects import all_groups
from tertulia.wire.api.personal import muted_users
from tertulia.wire.api.presence import all_presences
from tertulia.wire.api.presence import presences as presences_seen
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext
from tertulia.wire.api.statuses import status_object
from tertulia.wire.api.users import objects as people
from tertulia.wire.api.users.objects import (
    UNKNOWN_AVATAR,
    UserObject,
    api_email,
    avatar_address,
    avatar_url,
    user_object,
)
from tertulia.wire.http.fragments import JsonParts, json_array, json_object, object_fields

NAMED_CONVERSATIONS: Final = 250
"""Whoever takes part in that many direct conversations, the newest ones, is needed at first."""
NAMED_PEOPLE: Final = 1000
"""Conversations in which more would have to be named than these in all are left out of that."""


def accounts(context: SnapshotContext) -> dict[str, Any]:
    """Everybody that the viewer may know of, and the viewer's own account; where there are more
    than the client wants, those alone that it needs at first."""
    state, viewer = context.state, context.viewer
    found = people.by_visibility(state, viewer)
    role = None if viewer is None else permissions.role_of(state, viewer)
    look = people.Look(
        role=role,
        client_gravatar=context.registration.client_gravatar,
        with_profile=viewer is not None,
        with_activity=False,
    )
    unknown_too = not context.registration.capabilities.user_list_incomplete

    def those(which: Callable[[User], bool], look: people.Look, *, unknown_too: bool) -> JsonParts:
        listed = people.people(
            context.node.fragments,
            state,
            viewer,
            found,
            which,
            look,
            context.host,
            unknown_too=unknown_too,
        )
        return json_array(listed)

    own = _spectator() if viewer is None else _own(context, viewer)
    if _has_more(context):
        listed = _needed(context, look)
    else:
        listed = {
            "realm_users": those(people.active, look, unknown_too=unknown_too),
            "realm_non_active_users": those(people.deactivated, look, unknown_too=unknown_too),
        }
    return {
        **listed,
        "cross_realm_bots": those(
            people.system_bot, look._replace(with_activity=True), unknown_too=False
        ),
        **own,
    }


def _has_more(context: SnapshotContext) -> bool:
    """Whether there are more accounts than the client wants."""
    most = context.most_accounts
    return most is not None and len(context.state.users) > most


def _needed(context: SnapshotContext, look: people.Look) -> dict[str, Any]:
    """The viewer, and those with whom the viewer wrote last."""
    state, viewer = context.state, context.viewer
    ids: set[int] = set()
    if viewer is not None:
        own = (state.directs[direct_id] for direct_id in state.directs.of_user[viewer.id])
        latest = nlargest(NAMED_CONVERSATIONS, own, key=attrgetter("last_message_id"))
        ids = {viewer.id}
        for one in latest:
            if len(ids) + len(one.members) <= NAMED_PEOPLE:
                ids.update(one.members)
    needed = [
        user
        for user in (state.users[user_id] for user_id in sorted(ids))
        if viewer is not None and permissions.sees_user(state, viewer, user)
    ]

    def those(which: Callable[[User], bool]) -> list[UserObject]:
        return [
            user_object(
                state,
                viewer,
                user,
                context.host,
                client_gravatar=look.client_gravatar,
                with_profile=look.with_profile,
                with_activity=look.with_activity,
            )
            for user in needed
            if which(user)
        ]

    return {
        "realm_users": those(people.active),
        "realm_non_active_users": those(people.deactivated),
        "realm_users_incomplete": True,
    }


def _own(context: SnapshotContext, viewer: User) -> dict[str, Any]:
    """The viewer's account, and what it may do."""
    state, realm = context.state, context.state.realm

    def may(setting: Any) -> bool:
        return permissions.holds_as_member(state, viewer, setting)

    may_private = may(realm.can_create_private_channel_group)
    may_public = may(realm.can_create_public_channel_group)
    gravatar_by_client = context.registration.client_gravatar
    return {
        "user_id": viewer.id,
        "email": api_email(state, viewer, context.host),
        "delivery_email": viewer.address,
        "full_name": viewer.full_name,
        "avatar_source": viewer.avatar_source,
        "avatar_url": avatar_url(viewer, gravatar_by_client=gravatar_by_client, sees_address=True),
        "avatar_url_medium": avatar_address(viewer, sees_address=True, medium=True),
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
    }


def _spectator() -> dict[str, Any]:
    """Nobody's account: what one who is not signed in counts as. No account has the ID 0."""
    return {
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
    }


def bots(context: SnapshotContext) -> dict[str, Any]:
    """The bots that the viewer administers."""
    viewer = context.viewer
    return {"realm_bots": [] if viewer is None else bot_objects(context.state, viewer)}


def groups(context: SnapshotContext) -> dict[str, Any]:
    """User groups, those of the roles too; deactivated ones for clients that know of them. To a
    client that wants fewer accounts nobody is named of groups with more members, but the caller's
    own are told."""
    state, viewer = context.state, context.viewer
    most = context.most_accounts if _has_more(context) else None
    listed = all_groups(
        context.node.fragments,
        state,
        with_deactivated=context.registration.capabilities.include_deactivated_groups,
        most=most,
    )
    if most is None:
        return {"realm_user_groups": listed}
    own = () if viewer is None else state.memberships.groups_of(viewer)
    return {"realm_user_groups": listed, "realm_user_groups_own": list(own)}


def presences(context: SnapshotContext) -> dict[str, Any]:
    """Presence of the last days; none for spectators."""
    registration = context.registration
    modern = registration.slim_presence or registration.capabilities.simplified_presence_events
    found: JsonParts | dict[str, Any] = {}
    last, viewer, days = -1, context.viewer, context.presence_days
    if viewer is not None and modern:
        found, last = all_presences(context.node, viewer, days, context.now)
    elif viewer is not None:
        found, last = presences_seen(context.node, viewer, days, context.now, modern=False)
    return {
        "presences": found if days else {},
        "presence_last_update_id": last,
        "server_timestamp": context.now,
    }


def statuses(context: SnapshotContext) -> dict[str, Any]:
    """The statuses that people have set."""
    state, viewer = context.state, context.viewer
    if viewer is None:
        return {"user_status": {}}

    def statuses_of(user_ids: Iterable[int]) -> bytes:
        shown = {str(one): status_object(state, state.users[one]) for one in user_ids}
        return object_fields({user_id: status for user_id, status in shown.items() if status})

    return {
        "user_status": json_object(
            context.node.fragments.get(
                ("user_status", one.first, one.size), one.version, partial(statuses_of, one.ids)
            )
            for one in people.by_visibility(state, viewer)
            if one.kind is not people.AccountVisibility.UNKNOWN
        )
    }


def muted(context: SnapshotContext) -> dict[str, Any]:
    """Whom the viewer has muted."""
    viewer = context.viewer
    return {"muted_users": [] if viewer is None else muted_users(context.state, viewer.id)}


SECTIONS: Final[Sections] = {
    ("realm_user",): accounts,
    ("realm_bot",): bots,
    ("realm_user_groups",): groups,
    ("presence",): presences,
    ("user_status",): statuses,
    ("muted_users",): muted,
}
