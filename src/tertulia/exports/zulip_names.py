"""The IDs, names, and numbers in Zulip's format that differ from Tertulia's."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from tertulia.exports.scope import ExportScope
from tertulia.model.channels import TopicsPolicy
from tertulia.model.drafts import DraftKind
from tertulia.model.groups import GroupSetting, Members
from tertulia.model.messages import DirectConversation, Flag, Message
from tertulia.model.reactions import EmojiKind
from tertulia.model.settings import declared_settings
from tertulia.model.users import PersonalSettings

REALM: Final = 1
"""The organization's ID in the export."""
PERSONAL_SETTINGS: Final[Mapping[str, str]] = {
    "automatically_unmute_topics_in_muted_channels_policy": (
        "automatically_unmute_topics_in_muted_streams_policy"
    ),
    "demote_inactive_channels": "demote_inactive_streams",
    "direct_content_in_desktop_notifications": "pm_content_in_desktop_notifications",
    "enable_channel_audible_notifications": "enable_stream_audible_notifications",
    "enable_channel_desktop_notifications": "enable_stream_desktop_notifications",
    "enable_channel_email_notifications": "enable_stream_email_notifications",
    "enable_channel_push_notifications": "enable_stream_push_notifications",
    "send_channel_typing_notifications": "send_stream_typing_notifications",
    "send_direct_typing_notifications": "send_private_typing_notifications",
    "web_channel_unreads_count_display_policy": "web_stream_unreads_count_display_policy",
}
REALM_SETTINGS: Final[Mapping[str, str]] = {
    "moderation_request_channel_id": "moderation_request_channel",
    "move_messages_between_channels_limit_seconds": "move_messages_between_streams_limit_seconds",
    "move_messages_within_channel_limit_seconds": "move_messages_within_stream_limit_seconds",
    "new_channel_announcements_channel_id": "new_stream_announcements_stream",
    "signup_announcements_channel_id": "signup_announcements_stream",
    "updates_announcements_channel_id": "zulip_update_announcements_stream",
}
HISTORY_POLICIES: Final[Mapping[str, int]] = {"all": 1, "moves": 2, "none": 3}
TOPICS_POLICIES: Final[Mapping[str, int]] = {
    TopicsPolicy.INHERIT.value: 1,
    TopicsPolicy.ALLOW_EMPTY.value: 2,
    TopicsPolicy.DISABLE_EMPTY.value: 3,
    TopicsPolicy.EMPTY_ONLY.value: 4,
}
REACTION_KINDS: Final[Mapping[EmojiKind, str]] = {
    EmojiKind.UNICODE: "unicode_emoji",
    EmojiKind.CUSTOM: "realm_emoji",
    EmojiKind.EXTRA: "zulip_extra_emoji",
}
PERSON, CHANNEL, DIRECT_GROUP = 1, 2, 3
"""Kinds of recipients."""
DIRECT_TOPIC: Final = "\x07"
"""The topic of direct messages in Zulip's format."""
SYSTEM_BOTS: Final[Mapping[int, str]] = {
    1: "notification-bot@zulip.com",
    2: "welcome-bot@zulip.com",
    3: "emailgateway@zulip.com",
}
"""Addresses of Zulip's own bots, by the ID of Tertulia's."""
READ, WILDCARD, HISTORICAL, DIRECT = 1, 16, 1024, 2048
"""Bits of a reader's flags on a message."""
_FLAGS: Final = (
    (Flag.STARRED, 2),
    (Flag.COLLAPSED, 4),
    (Flag.MENTIONED, 8),
    (Flag.CHANNEL_WILDCARD_MENTIONED, WILDCARD),
    (Flag.TOPIC_WILDCARD_MENTIONED, 32),
    (Flag.HAS_ALERT_WORD, 512),
    (Flag.RECORD, HISTORICAL),
)
FLAGS: Final = tuple(sum(bit for flag, bit in _FLAGS if flags & flag) for flags in range(128))
"""Zulip's flags for each combination of Tertulia's."""
_PERSONAL: Final = tuple(
    (name, PERSONAL_SETTINGS.get(name, name)) for name in declared_settings(PersonalSettings)
)


def settings_columns(settings: PersonalSettings) -> dict[str, Any]:
    """Return personal settings as columns of a row."""
    values = ((column, getattr(settings, name)) for name, column in _PERSONAL)
    return {name: value.value if isinstance(value, Enum) else value for name, value in values}


class Recipients:
    """The IDs of recipients: one for each person, channel, and group of three or more people with
    direct messages."""

    def __init__(self, scope: ExportScope) -> None:
        state = scope.state
        self._people = {user: n for n, user in enumerate(sorted(u.id for u in state.users), 1)}
        first = len(self._people) + 1
        self._channels = {channel.id: n for n, channel in enumerate(scope.channels, first)}
        self.groups = [direct for direct in scope.directs if len(direct.members) > 2]
        self.groups += _intended_groups(scope)
        first += len(self._channels)
        self._groups = {group.id: n for n, group in enumerate(self.groups, first)}
        self._directs = {direct.id: direct for direct in scope.directs}
        self._by_members = {
            group.members: number for number, group in enumerate(self.groups, first)
        }

    def person(self, user_id: int) -> int:
        return self._people[user_id]

    def channel(self, channel_id: int) -> int:
        return self._channels[channel_id]

    def group(self, conversation: DirectConversation) -> int:
        return self._groups[conversation.id]

    def direct(self, user_id: int, others: Iterable[int]) -> int:
        """Return the recipient of a scheduled message or a draft from a user to others."""
        members = tuple(sorted({user_id, *others}))
        if len(members) > 2:
            return self._by_members[members]
        return self._people[other_of(members, user_id)]

    def of_message(self, message: Message) -> int:
        if message.channel_id is not None:
            return self._channels[message.channel_id]
        conversation = self._directs[message.direct_id or 0]
        if len(conversation.members) > 2:
            return self._groups[conversation.id]
        return self._people[other_of(conversation.members, message.sender_id)]

    def rows(self) -> Iterable[dict[str, int]]:
        for kind, ids in (
            (PERSON, self._people),
            (CHANNEL, self._channels),
            (DIRECT_GROUP, self._groups),
        ):
            for type_id, number in ids.items():
                yield {"id": number, "type_id": type_id, "type": kind}


def _intended_groups(scope: ExportScope) -> Iterator[DirectConversation]:
    """Yield the groups of people with scheduled messages or drafts, but no messages yet."""
    state = scope.state
    scheduled = (
        message for message in state.tables["scheduled_messages"] if message.channel_id is None
    )
    drafts = (draft for draft in state.tables["drafts"] if draft.kind is DraftKind.DIRECT)
    written = itertools.chain(
        ((value.user_id, value.user_ids) for value in scheduled),
        ((draft.user_id, draft.to) for draft in drafts),
    )
    wanted = {tuple(sorted({by, *to})) for by, to in written if scope.shares(by)}
    known = {direct.members for direct in scope.directs}
    first = state.directs.next_id()
    new = sorted(item for item in wanted - known if len(item) > 2)
    for number, members in enumerate(new, first):
        yield DirectConversation(id=number, members=members)


def other_of(members: Iterable[int], user_id: int) -> int:
    """Return the other person of a direct conversation, or the user if they're alone."""
    return next((member_id for member_id in members if member_id != user_id), user_id)


class Groups:
    """The IDs of user groups: Tertulia's, and unnamed ones for permissions that people or several
    groups hold."""

    def __init__(self, known: Iterable[int]) -> None:
        self._last = max(known, default=0)
        self.unnamed: dict[int, Members] = {}

    def of(self, setting: GroupSetting) -> int:
        """Return the group that holds a permission."""
        if isinstance(setting, int):
            return setting
        self._last += 1
        self.unnamed[self._last] = setting
        return self._last


class Clients:
    """The IDs of programs that sent messages."""

    INTERNAL: Final = 1

    def __init__(self) -> None:
        self._ids = {"Internal": self.INTERNAL}

    def of(self, name: str) -> int:
        return self._ids.setdefault(name or "Internal", len(self._ids) + 1)

    def rows(self) -> Iterable[dict[str, Any]]:
        return ({"id": number, "name": name} for name, number in self._ids.items())
