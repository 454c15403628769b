"""Log formats, which let nodes of two versions serve together.

A node can read what older versions wrote. Changes and fields that older versions can't read are
written only once the log's head allows their format: an older node couldn't process the change, and
would drop the field when it rewrites the record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import Struct

from tertulia.model.changes import (
    AnyChange,
    ChannelChanged,
    ChannelFolderChanged,
    RealmChanged,
    RealmDefaultsChanged,
    SettingsChanged,
    SubscriptionChanged,
    UserChanged,
    UserGroupChanged,
)

FIRST_FORMAT: Final = 100
"""The format of the first version that supports rolling upgrades."""

SINCE: Mapping[str, int] = {
    "EventIdsUsedUp": 101,
    "Bot.incoming": 101,
    "Bot.service": 101,
    "Bot.embedded": 101,
    "AccessKey": 101,
    "AccessKeyMade": 101,
    "AccessKeyUsed": 101,
    "AccessKeysEnded": 101,
    "Reach": 101,
    "DeviceChanged": 101,
    "PhonePush": 101,
    "PushSubscribed": 101,
    "PushSubscription": 101,
    "PushUnsubscribed": 101,
    "Feed": 101,
    "FeedAdded": 101,
    "FeedChanged": 101,
    "FeedRead": 101,
    "FeedRemoved": 101,
    "Banner": 101,
    "BannerPosted": 101,
    "BannersEnded": 101,
    "DataExport": 101,
    "DataExportSet": 101,
    "DataExportsRemoved": 101,
    "DataImport": 101,
    "DataImportSet": 101,
    "DataImportsRemoved": 101,
    "ExportKind.CONSENT": 101,
    "ExportKind.FULL": 101,
    "ExportKind.PERSON": 101,
    "ExportKind.PUBLIC": 101,
    "Identity": 101,
    "IdentityLinked": 101,
    "IdentitiesUnlinked": 101,
    "IdentityRevised": 101,
    "ImportKind.MATTERMOST": 101,
    "ImportKind.ROCKETCHAT": 101,
    "ImportKind.SLACK": 101,
    "ImportKind.ZULIP": 101,
    "ImportRemark": 101,
    "ImportState.CANCELED": 101,
    "ImportState.CHECKED": 101,
    "ImportState.CHECKING": 101,
    "ImportState.FAILED": 101,
    "ImportState.FINISHED": 101,
    "ImportState.IMPORTING": 101,
    "ImportSummary": 101,
    "CallAccount": 101,
    "CallAccountConnected": 101,
    "CallAccountDisconnected": 101,
    "InvitationChanged": 101,
    "MessagePinned": 101,
    "MessagesMoved.whole_topic": 101,
    "MessageSent.imported": 101,
    "MessageUnpinned": 101,
    "Pin": 101,
    "ReadStateImported": 101,
    "Realm.account_api_keys": 101,
    "Realm.public_archive": 101,
    "Realm.second_factor_grace_days": 101,
    "Realm.second_factor_required_for": 101,
    "Realm.second_factor_required_since": 101,
    "Realm.sign_in_links": 101,
    "Realm.upload_quota_per_user_mib": 101,
    "User.is_placeholder": 101,
    "User.joined_elsewhere": 101,
    "User.upload_quota_mib": 101,
    "Realm.max_bots_per_user": 101,
    "Realm.max_channels_per_user": 101,
    "Realm.max_drafts_per_user": 101,
    "Realm.max_groups_per_user": 101,
    "Realm.max_unfinished_uploads_per_user": 101,
    "QueuesEnded": 101,
    "QuietHours": 101,
    "QuietHours.channel_ids": 101,
    "QuietTimes": 101,
    "QuietTimesChanged": 101,
    "Passkey": 101,
    "RecoveryCodeUsed": 101,
    "RecoveryCodes": 101,
    "RecoveryCodesChanged": 101,
    "SecondFactor": 101,
    "SecondFactorAdded": 101,
    "SecondFactorPrepared": 101,
    "SecondFactorUsed": 101,
    "SecondFactorsRemoved": 101,
    "Session.provider_session": 101,
    "ScheduledMessage.key_id": 101,
    "StatusChanged.ends_at": 101,
    "TopicMove": 101,
    "TopicMoveEnded": 101,
    "TopicMoveStarted": 101,
    "Totp": 101,
    "UserStatus.ends_at": 101,
}
"""Kinds of changes (`BannerPosted`), and fields or values of stored structs and enumerations
(`Channel.pinned`), with the format since which they may be written. Each release that adds some
has one new format, higher than all before."""

IGNORED: frozenset[str] = frozenset(
    {
        *("MessageSent.request_digest", "MessagesMoved.to_public_history"),
        *("Session.method", "Session.address", "SessionUsed.address"),
        *("User.invited_role", "User.invited_group_ids"),
    }
)
"""New fields that older nodes may ignore, so they can be written at any time."""

RECORDS: Final[Mapping[type, str]] = {
    ChannelChanged: "Channel",
    ChannelFolderChanged: "ChannelFolder",
    RealmChanged: "Realm",
    RealmDefaultsChanged: "PersonalSettings",
    SettingsChanged: "PersonalSettings",
    SubscriptionChanged: "Subscription",
    UserChanged: "User",
    UserGroupChanged: "UserGroup",
}
"""Changes that name fields of a record: with `values` by field name, or with one `property`."""

LOG_FORMAT = max([FIRST_FORMAT, *SINCE.values()])
"""The newest format that this version knows."""


def needed_format(changes: Sequence[AnyChange], since: Mapping[str, int] | None = None) -> int:
    """Return the lowest format that allows these changes."""
    known = SINCE if since is None else since
    return max((_needed(change, known) for change in changes), default=FIRST_FORMAT)


def _needed(value: Any, since: Mapping[str, int]) -> int:
    match value:
        case Struct():
            return max(*_of_struct(value, since), *_of_values(value, since))
        case Enum():
            return since.get(f"{type(value).__name__}.{value.name}", FIRST_FORMAT)
        case Mapping():
            parts: Iterable[Any] = (*value.keys(), *value.values())
        case tuple() | list() | set() | frozenset():
            parts = value
        case _:
            return FIRST_FORMAT
    return max((_needed(part, since) for part in parts), default=FIRST_FORMAT)


def _of_values(change: Any, since: Mapping[str, int]) -> Iterator[int]:
    """Yield the formats that changed fields need."""
    yield FIRST_FORMAT
    record = RECORDS.get(type(change))
    if record is not None:
        is_single = isinstance(change, SubscriptionChanged)
        for name in [change.property] if is_single else change.values:
            yield since.get(f"{record}.{name}", FIRST_FORMAT)


def _of_struct(value: Struct, since: Mapping[str, int]) -> Iterator[int]:
    name = type(value).__name__
    yield since.get(name, FIRST_FORMAT)
    for field in msgspec.structs.fields(value):
        part = getattr(value, field.name)
        # Defaults aren't written.
        made = field.default_factory
        if part != (field.default if made is msgspec.NODEFAULT else made()):
            yield since.get(f"{name}.{field.name}", FIRST_FORMAT)
            yield _needed(part, since)
