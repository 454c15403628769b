"""Creating, changing, and archiving channels, and marking them as active or inactive."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.channels import default_groups, folders
from tertulia.domain.groups import group_settings
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS, PermissionUpdate
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.changes import ChannelChanged
from tertulia.model.channels import Channel, TopicsPolicy
from tertulia.model.errors import NoSuchChannel, Refused
from tertulia.model.groups import GroupSetting, Members, SystemGroup
from tertulia.model.users import User
from tertulia.state.channels import is_active
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

FOR_EVER = -1
"""The value of `retention_days` that keeps messages forever."""


class NewChannel(Struct, frozen=True, kw_only=True):
    """A channel to create. `rendered_description` is the HTML of `description`.

    If `history_public` is None, the history is public unless the channel is private. Permissions
    that aren't in `groups` get their defaults.
    """

    name: str
    description: str = ""
    rendered_description: str = ""
    is_private: bool = False
    is_web_public: bool = False
    is_default: bool = False
    history_public: bool | None = None
    retention_days: int | None = None
    topics_policy: TopicsPolicy = TopicsPolicy.INHERIT
    folder_id: int | None = None
    groups: Mapping[str, GroupSetting] = {}
    web_is_open: bool = True
    """Whether the server allows web-public channels."""


class ChannelEdit(Struct, frozen=True, kw_only=True):
    """New values for a channel. UNSET fields don't change."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    is_private: bool | UnsetType = UNSET
    is_web_public: bool | UnsetType = UNSET
    history_public: bool | UnsetType = UNSET
    is_default: bool | UnsetType = UNSET
    retention_days: int | UnsetType | None = UNSET
    topics_policy: TopicsPolicy | UnsetType = UNSET
    folder_id: int | UnsetType | None = UNSET
    unarchive: bool = False
    groups: Mapping[str, PermissionUpdate] = {}
    web_is_open: bool = True
    """Whether the server allows web-public channels."""


def existing_channel(state: State, actor: User, channel_id: int) -> Channel:
    """Return the channel with that ID. Raise Refused unless it exists and the actor can see it."""
    try:
        return channel_access.visible_channel(state, actor, channel_id=channel_id)
    except NoSuchChannel:
        raise Refused("This channel doesn't exist.") from None


# Creating


def check_unlike(others: Iterable[Channel], name: str, *, but: int | None = None) -> None:
    """Raise Refused if the name looks like another channel's name. The channel `but` is ignored."""
    names_of_others = (other.name for other in others if other.id != but)
    if next(names.alike_among(name, names_of_others), None) is not None:
        raise Refused(f"Another channel has a similar name: '{name}'.")


def new_channel(context: CommandContext, new: NewChannel, channel_id: int) -> Channel:
    """Return the record of a new channel. The caller checks that its name isn't taken. Raise
    Refused for invalid names and combinations of settings, and if the actor lacks a permission."""
    state, actor, now = context.state, context.actor, context.now
    name = names.channel_name(new.name)
    check_may_create(context, new)
    check_unlike(state.channels, name)
    history_public = new.history_public
    if history_public is None:
        history_public = not new.is_private
    if new.is_default:
        _check_may_make_default(state, actor)
    if new.retention_days is not None:
        _check_may_set_retention(state, actor, new.retention_days)
    if new.topics_policy is not TopicsPolicy.INHERIT:
        _check_may_set_topics_policy(state, actor)
    folders.check_open(state, new.folder_id)
    groups: dict[str, GroupSetting] = {
        setting: group_settings.validated_setting(state, setting, CHANNEL_SETTINGS[setting], value)
        for setting, value in new.groups.items()
    }
    _check_may_set_groups(state, actor, groups)
    groups.setdefault("can_administer_channel_group", Members((actor.id,), ()))
    channel = msgspec.structs.replace(
        Channel(
            id=channel_id,
            name=name,
            description=new.description,
            rendered_description=new.rendered_description,
            created_at=int(now),
            creator_id=actor.id,
            is_private=new.is_private,
            is_web_public=new.is_web_public,
            is_default=new.is_default,
            history_public=history_public,
            retention_days=new.retention_days,
            topics_policy=new.topics_policy,
            folder_id=new.folder_id,
        ),
        **groups,
    )
    _check_whole(channel)
    return channel


def check_may_create(context: CommandContext, new: NewChannel) -> None:
    """Raise Refused unless the actor can create this kind of channel."""
    permissions.require(may_create(context, new), _NOT_OF_THIS_KIND)


def may_create(context: CommandContext, new: NewChannel) -> bool:
    """Whether the actor can create this kind of channel. Raise Refused if no such kind exists."""
    return _may_have_kind(
        context.state,
        context.actor,
        is_private=new.is_private,
        is_web_public=new.is_web_public,
        web_is_open=new.web_is_open,
    )


_NOT_OF_THIS_KIND: Final = "You don't have permission to do this."


def _may_have_kind(
    state: State,
    actor: User,
    *,
    is_private: bool,
    is_web_public: bool,
    web_is_open: bool,
) -> bool:
    realm = state.realm
    if is_private and is_web_public:
        raise Refused("A private channel can't be web-public.")
    if is_web_public:
        permissions.require(
            web_is_open and realm.enable_spectator_access,
            "Web-public channels aren't enabled in this organization.",
        )
        setting = realm.can_create_web_public_channel_group
    elif is_private:
        setting = realm.can_create_private_channel_group
    else:
        setting = realm.can_create_public_channel_group
    return permissions.holds_as_member(state, actor, setting)


def _check_may_make_default(state: State, actor: User) -> None:
    permissions.require(
        permissions.is_administrator(state, actor),
        "Only administrators can choose default channels.",
    )


REPORTS_NOT_PUBLIC: Final = "The channel for message reports can't be public."


def _check_may_set_retention(state: State, actor: User, days: int | None) -> None:
    permissions.require_owner(state, actor)
    if days is not None and days < 1 and days != FOR_EVER:
        raise Refused("Messages must be kept for at least one day.")


def _check_may_set_topics_policy(state: State, actor: User) -> None:
    permissions.require(
        permissions.holds(state, actor, state.realm.can_set_topics_policy_group),
        "You don't have permission to change whether messages need a topic.",
    )


_DELETING = {"can_delete_any_message_group", "can_delete_own_message_group"}
_NEEDS_CONTENT = _DELETING | {"can_add_subscribers_group", "can_subscribe_group"}


def _check_may_set_groups(state: State, actor: User, groups: Mapping[str, Any]) -> None:
    if _DELETING & groups.keys():
        permissions.require(
            permissions.holds_as_member(
                state, actor, state.realm.can_set_delete_message_policy_group
            ),
            "You don't have permission to change who can delete messages.",
        )


def _check_whole(channel: Channel) -> None:
    """Raise Refused for invalid combinations of settings."""
    if channel.is_private and channel.is_web_public:
        raise Refused("A private channel can't be web-public.")
    if not channel.is_private and not channel.history_public:
        raise Refused("Only private channels can have protected history.")
    if channel.is_default and channel.is_private:
        raise Refused("A default channel can't be private.")
    if not channel.history_public and channel.can_create_topic_group != SystemGroup.EVERYONE:
        raise Refused(
            "In a private channel with protected history, everyone must be allowed to start topics."
        )


# Changing


def change(
    context: CommandContext, channel_id: int, edit: ChannelEdit, render: Render
) -> Decision[Channel]:
    """Change the channel, and post a message from the notification bot about it. Return the changed
    channel.

    Raise Refused without permission for one of the changes, for invalid values, and if the channel
    isn't renamed or unarchived although `edit` asks for it; StaleExpectation if someone else has
    changed a permission.
    """
    state, actor = context.state, context.actor
    channel = existing_channel(state, actor, channel_id)
    permissions.require(
        channel_access.administers(state, actor, channel),
        "You don't have permission to administer this channel.",
    )
    values: dict[str, Any] = {
        **_described(context, channel, edit, render),
        **_kept(state, actor, channel, edit),
        **_privacy(state, actor, channel, edit),
        **_permissions(state, actor, channel, edit),
    }
    if edit.unarchive:
        permissions.require(channel.is_archived, "This channel isn't archived.")
        values["is_archived"] = False
        folder = state.folders.get(channel.folder_id)
        if folder is not None and folder.is_archived:
            # An archived folder has only archived channels.
            values.setdefault("folder_id", None)
    if edit.is_default is not UNSET:
        _check_may_make_default(state, actor)
        if edit.is_default and channel.is_archived and not edit.unarchive:
            raise Refused("An archived channel can't be a default channel.")
        values["is_default"] = edit.is_default
    after = msgspec.structs.replace(channel, **values)
    _check_whole(after)
    if after == channel:
        return Decision(channel)
    return Decision(
        after,
        [
            channel_change(state, channel, after),
            *(default_groups.removal_changes(state, channel) if after.is_private else ()),
            *bot_messages.posting_changes(
                context, bot_messages.channel_change_messages(context, channel, after), render
            ),
        ],
    )


def _described(
    context: CommandContext, channel: Channel, edit: ChannelEdit, render: Render
) -> dict[str, Any]:
    state = context.state
    values: dict[str, Any] = {}
    if edit.name is not UNSET:
        name = names.channel_name(edit.name)
        if name == channel.name:
            raise Refused("The channel already has this name.")
        other = state.channel_named(name)
        if other is not None and other.id != channel.id:
            raise Refused(f"A channel named '{name}' already exists.")
        check_unlike(state.channels, name, but=channel.id)
        values["name"] = name
    if edit.description is not UNSET:
        description = names.channel_description(edit.description)
        values["description"] = description
        values["rendered_description"] = render(context, description).html
    return values


def _kept(state: State, actor: User, channel: Channel, edit: ChannelEdit) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if edit.retention_days is not UNSET:
        _check_may_set_retention(state, actor, edit.retention_days)
        values["retention_days"] = edit.retention_days
    if edit.folder_id is not UNSET:
        if edit.folder_id != channel.folder_id:
            folders.check_open(state, edit.folder_id)
        values["folder_id"] = edit.folder_id
    if edit.topics_policy is not UNSET:
        _check_may_set_topics_policy(state, actor)
        if edit.topics_policy is TopicsPolicy.EMPTY_ONLY and any(
            state.topics.of_channel[channel.id]
        ):
            raise Refused(
                "The channel has messages in topics. Move them to the general chat topic first."
            )
        values["topics_policy"] = edit.topics_policy
    return values


def _privacy(state: State, actor: User, channel: Channel, edit: ChannelEdit) -> dict[str, Any]:
    """Return the three privacy fields, derived from those that are given; empty if none is
    given."""
    if edit.is_private is UNSET and edit.is_web_public is UNSET and edit.history_public is UNSET:
        return {}
    is_private = channel.is_private if edit.is_private is UNSET else edit.is_private
    if edit.is_web_public is not UNSET:
        is_web_public = edit.is_web_public
    else:
        is_web_public = channel.is_web_public and not is_private
    if edit.history_public is not UNSET:
        history_public = edit.history_public
    elif is_private == channel.is_private:
        history_public = channel.history_public
    else:
        history_public = not is_private
    values = {
        "is_private": is_private,
        "is_web_public": is_web_public,
        "history_public": history_public,
    }
    if all(getattr(channel, name) == value for name, value in values.items()):
        return {}
    permissions.require(
        channel_access.reads_channel(state, actor, channel),
        "You need access to the messages in this channel.",
    )
    if (is_private, is_web_public) != (channel.is_private, channel.is_web_public):
        allowed = _may_have_kind(
            state,
            actor,
            is_private=is_private,
            is_web_public=is_web_public,
            web_is_open=edit.web_is_open,
        )
        permissions.require(allowed, _NOT_OF_THIS_KIND)
        is_for_reports = channel.id == state.realm.moderation_request_channel_id
        permissions.require(is_private or not is_for_reports, REPORTS_NOT_PUBLIC)
    return values


def _permissions(state: State, actor: User, channel: Channel, edit: ChannelEdit) -> dict[str, Any]:
    values = {
        name: group_settings.updated_setting(
            state, name, CHANNEL_SETTINGS[name], getattr(channel, name), given
        )
        for name, given in edit.groups.items()
    }
    if _NEEDS_CONTENT & values.keys():
        permissions.require(
            channel_access.reads_channel(state, actor, channel),
            "You need access to the messages in this channel.",
        )
    _check_may_set_groups(state, actor, values)
    return values


def archive(context: CommandContext, channel_id: int) -> Decision[None]:
    """Archive the channel. It stays readable, but nobody can send to it, and its messages count as
    read."""
    state, actor = context.state, context.actor
    channel = existing_channel(state, actor, channel_id)
    permissions.require(
        channel_access.administers(state, actor, channel),
        "You don't have permission to administer this channel.",
    )
    permissions.require(not channel.is_archived, "This channel is already archived.")
    after = msgspec.structs.replace(
        channel, is_archived=True, is_default=False, read_until=state.last_message_id
    )
    return Decision(
        None,
        [channel_change(state, channel, after), *default_groups.removal_changes(state, channel)],
    )


_DECIDES_VISIBILITY = {"is_private", "is_web_public", *channel_access.VISIBILITY_SETTINGS}
_PRIVACY = ("is_private", "is_web_public", "history_public")


def channel_change(state: State, before: Channel, after: Channel) -> ChannelChanged:
    """Return the change from `before` to `after`, with the users who can now see the channel, or no
    longer can."""
    fields = [field for field in before.__struct_fields__ if _differ(before, after, field)]
    if any(field in _PRIVACY for field in fields):
        fields = [*(field for field in fields if field not in _PRIVACY), *_PRIVACY]
    gained: set[int] = set()
    lost: set[int] = set()
    if _DECIDES_VISIBILITY & set(fields):
        saw = channel_access.channel_viewers(state, before)
        see = channel_access.channel_viewers(state, after)
        gained, lost = see - saw, saw - see
    returned = before.is_archived and not after.is_archived
    return ChannelChanged(
        channel_id=before.id,
        values={field: getattr(after, field) for field in fields},
        was={field: getattr(before, field) for field in fields},
        gained=tuple(sorted(gained)),
        lost=tuple(sorted(lost)),
        subscribers=tuple(state.subscribers(before.id)) if gained or returned else (),
        archived=before.is_archived,
    )


def _differ(before: Channel, after: Channel, field: str) -> bool:
    return bool(getattr(before, field) != getattr(after, field))


def update_activity(context: CommandContext) -> Decision[None]:
    """Mark channels without recent messages as inactive, and others as active again."""
    state, now = context.state, context.now
    changes = [
        channel_change(
            state,
            channel,
            msgspec.structs.replace(channel, is_recently_active=not channel.is_recently_active),
        )
        for channel in state.channels
        if channel.is_recently_active != is_active(channel, now)
    ]
    return Decision(None, changes)


def activity_due(state: State, now: float) -> float | None:
    """Return when `update_activity` is due, in UNIX seconds."""
    return state.channels.activity.next(now)
