"""The lines of Mattermost's bulk export.

It's a JSON object per line: a version first, then teams, channels, users, bots, posts with their
replies, custom emoji, direct channels, and direct posts.
"""

from typing import Any

from msgspec import Struct


class BulkInfo(Struct):
    generator: str | None = None
    version: str | None = None


class BulkTeam(Struct):
    name: str
    display_name: str | None = None
    type: str | None = None
    description: str | None = None
    allow_open_invite: bool | None = None


class BulkChannel(Struct):
    team: str
    name: str
    display_name: str | None = None
    type: str | None = None
    header: str | None = None
    purpose: str | None = None
    deleted_at: int | None = None


class BulkNotifyProps(Struct):
    """The notification settings of a person, or of a channel's member."""

    desktop: str | None = None
    mobile: str | None = None
    email: str | None = None
    channel: str | None = None
    mention_keys: str | None = None
    mark_unread: str | None = None


class BulkChannelMembership(Struct):
    name: str
    roles: str | None = None
    notify_props: BulkNotifyProps | None = None
    favorite: bool | None = None
    last_viewed_at: int | None = None


class BulkTeamMembership(Struct):
    name: str
    roles: str | None = None
    channels: list[BulkChannelMembership] | None = None


class BulkCustomStatus(Struct):
    emoji: str | None = None
    text: str | None = None
    expires_at: str | None = None


class BulkUser(Struct):
    username: str
    email: str | None = None
    auth_service: str | None = None
    nickname: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    position: str | None = None
    roles: str | None = None
    locale: str | None = None
    delete_at: int | None = None
    military_time: str | None = None
    profile_image: str | None = None
    teams: list[BulkTeamMembership] | None = None
    notify_props: BulkNotifyProps | None = None
    custom_status: BulkCustomStatus | None = None


class BulkBot(Struct):
    username: str
    owner: str | None = None
    display_name: str | None = None
    description: str | None = None
    delete_at: int | None = None
    profile_image: str | None = None


class BulkEmoji(Struct):
    name: str
    image: str


class BulkParticipant(Struct):
    username: str
    last_viewed_at: int | None = None


class BulkDirectChannel(Struct):
    members: list[str] | None = None
    participants: list[BulkParticipant] | None = None
    favorited_by: list[str] | None = None
    header: str | None = None


class BulkReaction(Struct):
    user: str
    emoji_name: str


class BulkFileReference(Struct):
    path: str


class BulkPost(Struct):
    """A post, a reply, or a direct message."""

    user: str
    create_at: int
    team: str = ""
    channel: str = ""
    channel_members: list[str] | None = None
    type: str | None = None
    message: str | None = None
    props: dict[str, Any] | None = None
    edit_at: int | None = None
    flagged_by: list[str] | None = None
    reactions: list[BulkReaction] | None = None
    replies: list["BulkPost"] | None = None
    attachments: list[BulkFileReference] | None = None
    is_pinned: bool | None = None


class BulkLine(Struct):
    type: str
    version: int | None = None
    info: BulkInfo | None = None
    team: BulkTeam | None = None
    channel: BulkChannel | None = None
    user: BulkUser | None = None
    bot: BulkBot | None = None
    emoji: BulkEmoji | None = None
    post: BulkPost | None = None
    direct_channel: BulkDirectChannel | None = None
    direct_post: BulkPost | None = None
