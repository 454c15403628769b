"""The people, bots, groups, channels, and emoji of an export."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tertulia.imports.emoji_aliases import slack_emoji
from tertulia.imports.records import (
    SourceBot,
    SourceChannel,
    SourceEmoji,
    SourceFile,
    SourceGroup,
    SourceOrganization,
    SourceProfileField,
    SourceStatus,
    SourceSubscription,
    SourceUser,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.slack.conversations import SlackConversation, listed
from tertulia.imports.slack.mrkdwn import plain, unescaped
from tertulia.imports.slack.senders import SLACKBOT, SlackSender
from tertulia.imports.slack.values import ANYTHING, Record, decoded, record, seconds, text, texts
from tertulia.imports.source import SourceError
from tertulia.model.profiles import FieldKind
from tertulia.model.users import Role

MAX_SPANS: Final = 100
"""The most times that someone joined or left a channel. Only the newest count."""
_FIELDS: Final = (
    ("real_name", FieldKind.SHORT_TEXT, "Full name"),
    ("title", FieldKind.SHORT_TEXT, "Title"),
    ("phone", FieldKind.SHORT_TEXT, "Phone"),
    ("pronouns", FieldKind.PRONOUNS, "Pronouns"),
    ("skype", FieldKind.SHORT_TEXT, "Skype"),
)
"""Fields of Slack's profiles that become profile fields here."""
_EMOJI_NAME: Final = re.compile(r"[a-z0-9_-]{1,100}")
_AVATARS: Final = "avatars.slack-edge.com"
"""The host of avatars that people uploaded. Others are generated from initials."""
_HOSTS: Final = (".slack-edge.com", ".slack.com")
"""The hosts that pictures are fetched from."""
_MAX_VALUE: Final = 50
"""Longest short text of a profile field, in characters."""


class SlackRecords:
    """The records in the export's lists, by ID."""

    def __init__(self, root: Path, conversations: Iterable[SlackConversation]) -> None:
        """Raises SourceError."""
        self._root = root
        people = [*listed(root, "users.json"), *listed(root, "org_users.json")]
        if not people:
            raise SourceError(
                "The export has no people: users.json is missing or empty. Choose the ZIP file that"
                " Slack made, or its directory."
            )
        self.users: dict[str, Record] = {}
        self.apps: dict[str, str] = {}
        """The user that an app posts as, by the app's bot ID."""
        for person in people:
            key = text(person, "id")[:64]
            if key and self.users.setdefault(key, person) is person:
                self.apps.setdefault(text(record(person, "profile"), "bot_id"), key)
        self.senders: dict[str, SlackSender] = {}
        """People and bots without records, from the index."""
        self.conversations = {conversation.number: conversation for conversation in conversations}
        self.by_id = {conversation.id: conversation for conversation in conversations}
        self.groups: dict[str, Record] = {}
        for name in ("usergroups.json", "subteams.json"):
            for person in listed(root, name):
                if key := text(person, "id"):
                    self.groups.setdefault(key, person)
        self.emoji, self.aliases = _custom_emoji(root)

    @property
    def known_senders(self) -> Iterator[str]:
        yield from self.users
        yield from self.apps

    def name_of(self, key: str) -> str:
        """Return the name of a person, bot, or channel; empty if unknown."""
        key = self.apps.get(key, key)
        if (user := self.users.get(key)) is not None:
            return full_name(user)
        if (sender := self.senders.get(key)) is not None:
            return sender.name
        channel = self.by_id.get(key)
        return "" if channel is None else channel.name

    def organization(
        self, name: str, moves: Iterable[tuple[int, str, int, bool]], report: ImportReport
    ) -> SourceOrganization:
        """Return everything except messages. `moves` come from the index."""
        fields = [
            (key, kind, label)
            for key, kind, label in _FIELDS
            if any(_profile_value(user, key) for user in self.users.values())
        ]
        channels = [
            conversation
            for conversation in self.conversations.values()
            if not conversation.is_direct
        ]
        founded = [at for channel in channels if (at := seconds(channel.record, "created"))]
        return SourceOrganization(
            name=name,
            created_at=min(founded, default=0),
            users=tuple(self._users([key for key, _, _ in fields], report)),
            groups=tuple(self._groups()),
            channels=tuple(self._channel(channel) for channel in channels),
            subscriptions=tuple(_subscriptions(channels, moves)),
            emoji=tuple(self._emoji(report)),
            profile_fields=tuple(
                SourceProfileField(key=key, kind=kind, name=label, order=number)
                for number, (key, kind, label) in enumerate(fields)
            ),
        )

    def _users(self, fields: list[str], report: ImportReport) -> Iterator[SourceUser]:
        for key, user in self.users.items():
            yield self._user(key, user, fields, report)
        for key, sender in self.senders.items():
            kind = "bots" if sender.is_bot else "people"
            report.change(
                kind, "The export has their messages, but not their account.", sender.name
            )
            yield SourceUser(
                key=key,
                full_name=sender.name,
                role=Role.MEMBER if sender.is_bot else Role.GUEST,
                is_active=False,
                is_placeholder=True,
                bot=SourceBot() if sender.is_bot else None,
                invitable=False,
            )
        for conversation in self.conversations.values():
            for key in conversation.members if conversation.is_direct else ():
                if key not in self.users and key not in self.senders:
                    self.senders[key] = SlackSender(key, key, False)
                    yield SourceUser(
                        key=key, full_name=key, role=Role.GUEST, is_active=False,
                        is_placeholder=True, invitable=False,
                    )  # fmt: skip

    def _user(self, key: str, user: Record, fields: list[str], report: ImportReport) -> SourceUser:
        profile = record(user, "profile")
        name = full_name(user)
        is_bot = user.get("is_bot") is True or key == SLACKBOT
        is_elsewhere = user.get("is_stranger") is True
        if is_bot:
            report.change("bots", "Apps can't post here until they are set up again.", name)
        if is_elsewhere:
            report.change("people", "They belong to another workspace.", name)
        if isinstance(profile.get("fields"), dict) and profile["fields"]:
            report.skip(
                "values of custom profile fields", "The export doesn't name these fields.", name
            )
        is_active = not (user.get("deleted") is True or is_bot or is_elsewhere)
        return SourceUser(
            key=key,
            full_name=name,
            address="" if is_bot else text(profile, "email"),
            role=Role.MEMBER if is_bot else Role.GUEST if is_elsewhere else _role(user),
            is_active=is_active,
            is_placeholder=is_elsewhere,
            invitable=is_active,
            timezone=text(user, "tz"),
            avatar=self._avatar(key, profile),
            bot=SourceBot() if is_bot else None,
            profile={field: value for field in fields if (value := _profile_value(user, field))},
            status=_status(profile),
        )

    def _avatar(self, key: str, profile: Record) -> SourceFile | None:
        local = self._root / "__avatars" / key
        if local.is_dir():
            for path in sorted(local.iterdir()):
                return SourceFile(place=path.relative_to(self._root).as_posix())
        original, scaled = text(profile, "image_original"), text(profile, "image_512")
        if original and _host(original).endswith(_HOSTS):
            return SourceFile(place=scaled if _host(scaled) == _AVATARS else original)
        return SourceFile(place=scaled) if _host(scaled) == _AVATARS else None

    def _groups(self) -> Iterator[SourceGroup]:
        for key, fields in self.groups.items():
            yield SourceGroup(
                key=key,
                name=text(fields, "handle", "name") or key,
                description=unescaped(text(fields, "description", "name")),
                created_at=seconds(fields, "date_create") or None,
                creator=text(fields, "created_by") or None,
                members=texts(fields, "users"),
                deactivated=bool(seconds(fields, "date_delete")),
            )

    def _channel(self, conversation: SlackConversation) -> SourceChannel:
        channel = conversation.record
        topic = plain(text(record(channel, "topic"), "value"), self)
        purpose = plain(text(record(channel, "purpose"), "value"), self)
        return SourceChannel(
            key=conversation.id,
            name=conversation.name,
            description="\n\n".join(dict.fromkeys(filter(None, (purpose, topic)))),
            created_at=seconds(channel, "created"),
            creator=text(channel, "creator") or None,
            is_private=conversation.kind == "private",
            is_archived=channel.get("is_archived") is True,
            is_default=channel.get("is_general") is True,
        )

    def _emoji(self, report: ImportReport) -> Iterator[SourceEmoji]:
        for name, place in self.emoji.items():
            if _EMOJI_NAME.fullmatch(name):
                yield SourceEmoji(key=name, name=name, file=SourceFile(place=place))
            else:
                report.skip("custom emoji", "The name isn't allowed here.", name)
        for name in self.aliases:
            report.change("custom emoji", "It's an alias of an emoji, which is used instead.", name)


def full_name(user: Record) -> str:
    profile = record(user, "profile")
    result = text(profile, "display_name", "real_name") or text(user, "real_name", "name", "id")
    return " ".join(result.split())[:100]


def _role(user: Record) -> Role:
    if user.get("is_primary_owner") is True or user.get("is_owner") is True:
        return Role.OWNER
    if user.get("is_admin") is True:
        return Role.ADMINISTRATOR
    is_guest = user.get("is_restricted") is True or user.get("is_ultra_restricted") is True
    return Role.GUEST if is_guest else Role.MEMBER


def _profile_value(user: Record, key: str) -> str:
    value = unescaped(text(record(user, "profile"), key)).strip()
    if key == "real_name" and value == full_name(user):
        return ""
    return value[:_MAX_VALUE]


def _status(profile: Record) -> SourceStatus | None:
    if seconds(profile, "status_expiration"):  # The status has ended, or will end.
        return None
    status = unescaped(text(profile, "status_text"))
    known = slack_emoji(text(profile, "status_emoji").strip(":"))
    if not status and known is None:
        return None
    return SourceStatus(text=status[:60], emoji="" if known is None else known.name)


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.scheme == "https" else ""


def _subscriptions(
    channels: Iterable[SlackConversation], moves: Iterable[tuple[int, str, int, bool]]
) -> Iterator[SourceSubscription]:
    """Yield the subscriptions, with the times when people joined and left."""
    known: dict[int, dict[str, list[tuple[int, bool]]]] = {}
    for number, user, after, leaves in moves:
        known.setdefault(number, {}).setdefault(user, []).append((after, leaves))
    for channel in channels:
        members = dict.fromkeys(channel.members)
        of_channel = known.get(channel.number, {})
        for user in (*members, *(user for user in of_channel if user not in members)):
            spans = _spans(of_channel.get(user, []), is_member=user in members)
            if spans:
                yield SourceSubscription(channel=channel.id, user=user, spans=spans)


def _spans(moves: list[tuple[int, bool]], *, is_member: bool) -> tuple[tuple[int, int | None], ...]:
    spans: list[tuple[int, int | None]] = []
    begins_before = len(moves) <= MAX_SPANS and (not moves or moves[0][1])
    begin: int | None = 0 if begins_before else None
    for after, leaves in moves[-MAX_SPANS:]:
        if leaves and begin is not None:
            spans.append((begin, after))
            begin = None
        elif not leaves and begin is None:
            begin = after
    if is_member:
        if begin is None:
            begin = spans.pop()[0] if spans else 0
        spans.append((begin, None))
    return tuple(spans)


def _custom_emoji(root: Path) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the images of custom emoji by name, and aliases of emoji: from `emoji.json`, in the
    format of Slack's API, or from files that a tool has downloaded."""
    images: dict[str, str] = {}
    aliases: dict[str, str] = {}
    given: Any = {}
    for name in ("emoji.json", "emojis/index.json"):
        path = root / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 16 * 1024 * 1024:
            try:
                given = decoded(path.read_bytes(), ANYTHING)
            except ValueError:
                raise SourceError(f"{name} isn't valid JSON.") from None
            break
    given = given.get("emoji", given) if isinstance(given, dict) else {}
    for name, place in given.items() if isinstance(given, dict) else ():
        if not isinstance(place, str):
            continue
        if place.startswith("alias:"):
            aliases[name] = place.removeprefix("alias:")
        elif _host(place).endswith(_HOSTS):
            images[name] = place
    for directory in ("emojis", "emoji"):
        if (root / directory).is_dir():
            for path in sorted((root / directory).iterdir()):
                if path.suffix in {".png", ".gif", ".jpg", ".jpeg"}:
                    images[path.stem] = path.relative_to(root).as_posix()
    return images, aliases
