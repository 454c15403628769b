"""Mattermost's teams, channels, and people as one organization."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple

from tertulia.domain import names
from tertulia.domain.organization.lifecycle import LANGUAGES
from tertulia.imports.emoji_aliases import emoji_named
from tertulia.imports.mattermost.lines import (
    BulkBot,
    BulkChannel,
    BulkChannelMembership,
    BulkDirectChannel,
    BulkEmoji,
    BulkLine,
    BulkNotifyProps,
    BulkTeam,
    BulkTeamMembership,
    BulkUser,
)
from tertulia.imports.records import (
    NO_SETTINGS,
    Holders,
    SourceBot,
    SourceChannel,
    SourceEmoji,
    SourceFile,
    SourceFolder,
    SourceOrganization,
    SourceProfileField,
    SourceStatus,
    SourceSubscription,
    SourceUser,
)
from tertulia.imports.references import clean
from tertulia.imports.report import ImportReport
from tertulia.imports.sorting import Findings, UnreadMarks
from tertulia.imports.source import SourceError, require_unique
from tertulia.model.profiles import FieldKind
from tertulia.model.users import BotKind, Role

DEFAULT_CHANNELS: Final = frozenset({"town-square", "off-topic"})
"""Channels that everyone joins in Mattermost."""
_EMOJI_NAME: Final = re.compile(r"[0-9a-z_-]*[0-9a-z]")
_NICKNAME: Final = "nickname"
_POSITION: Final = "position"
FindFile = Callable[[str], str | None]
"""Finds a file of the export."""


class KnownPeople(Struct):
    """The people in the part of the export that precedes the first post."""

    known: frozenset[str]
    """All user names of the export."""
    members: frozenset[str]
    """The people who are always imported."""
    channels: frozenset[str]
    """Keys."""
    private: frozenset[str]
    """Keys of private channels."""
    teams: frozenset[str]
    members_of: Mapping[str, frozenset[str]]
    """Each channel's members, by its key."""

    def has_team(self, name: str) -> bool:
        """Whether a team is imported."""
        return name in self.teams

    def has(self, name: str) -> bool:
        """Whether a person is imported or doesn't appear in the export."""
        return name in self.members or name not in self.known


class OrganizationReader:
    """Collects everything except posts."""

    def __init__(self, team: str) -> None:
        """`team` is the name of the only team to import; empty for all."""
        self._team = team
        self._seen_teams: list[str] = []
        self._teams: dict[str, BulkTeam] = {}
        self._channels: list[BulkChannel] = []
        self._users: list[BulkUser] = []
        self._notify_props: dict[tuple[Any, ...], BulkNotifyProps] = {}
        self._bots: list[BulkBot] = []
        self._emoji: dict[str, BulkEmoji] = {}
        self._directs: list[BulkDirectChannel] = []

    @property
    def name(self) -> str:
        """The organization's name: the first team's."""
        return next((clean(_title(team)) for team in self._teams.values()), "Mattermost")

    def add(self, line: BulkLine) -> None:
        """Add a line, unless it belongs to another team."""
        if line.team is not None:
            self._seen_teams.append(line.team.name)
            if not self._team or line.team.name == self._team:
                self._teams[line.team.name] = line.team
        elif line.channel is not None:
            if line.channel.team in self._teams:
                self._channels.append(line.channel)
        elif line.user is not None:
            self._users.append(line.user)
            self._share(line.user)
        elif line.bot is not None:
            self._bots.append(line.bot)
        elif line.emoji is not None:
            self._emoji[line.emoji.name] = line.emoji
        elif line.direct_channel is not None:
            self._directs.append(line.direct_channel)

    def require_team(self) -> None:
        """Raise SourceError if the export has no teams or doesn't have the chosen team."""
        if self._teams:
            return
        if not self._seen_teams:
            raise SourceError("The export has no teams.")
        result = ", ".join(self._seen_teams[:20])
        raise SourceError(f"The export has no team named '{self._team}'. It has: {result}.")

    def people(self) -> KnownPeople:
        bots = {bot.username for bot in self._bots}
        users = {user.username for user in self._users}
        members = {user.username for user in self._users if self._is_member(user)}
        members_of: dict[str, set[str]] = {}
        for user in self._users:
            for key, _ in self._memberships(user):
                members_of.setdefault(key, set()).add(user.username)
        return KnownPeople(
            known=frozenset(users | bots),
            members=frozenset(members | bots),
            channels=frozenset(map(_key, self._channels)),
            private=frozenset(_key(channel) for channel in self._channels if channel.type == "P"),
            teams=frozenset(self._teams),
            members_of={key: frozenset(some) for key, some in members_of.items()},
        )

    def _is_member(self, user: BulkUser) -> bool:
        return not self._team or any(team.name in self._teams for team in user.teams or ())

    def _memberships(self, user: BulkUser) -> Iterator[tuple[str, BulkChannelMembership]]:
        """Yield someone's channels, by key."""
        for team in user.teams or ():
            if team.name in self._teams:
                for channel in team.channels or ():
                    # Equal texts are one object, to save memory.
                    yield sys.intern(f"{team.name}/{channel.name}"), channel

    def _share(self, user: BulkUser) -> None:
        """Let equal texts and settings of the user's channels be one object, to save memory."""
        for team in user.teams or ():
            for channel in team.channels or ():
                channel.name = sys.intern(channel.name)
                if channel.roles is not None:
                    channel.roles = sys.intern(channel.roles)
                if (props := channel.notify_props) is not None:
                    channel.notify_props = self._notify_props.setdefault(astuple(props), props)

    def note_reading(self, unread: UnreadMarks) -> None:
        """Record when people last read their conversations."""
        for user in self._users:
            if user.delete_at or not self._is_member(user):
                continue
            for key, item in self._memberships(user):
                unread.read(key, user.username, (item.last_viewed_at or 0) // 1000)
        for direct in self._directs:
            people = tuple(_members(direct))
            for participant in direct.participants or ():
                seconds = (participant.last_viewed_at or 0) // 1000
                unread.read(people, participant.username, seconds)

    # Records

    def organization(
        self, findings: Findings, report: ImportReport, find_file: FindFile
    ) -> SourceOrganization:
        """Return everything except posts. `find_file` finds a file of the export."""
        require_unique([*(user.username for user in self._users)], "people")
        require_unique(list(map(_key, self._channels)), "channels")
        teams = list(self._teams.values())
        people = list(self._people(findings, report, find_file))
        is_single = len(teams) == 1
        settings: dict[str, Any] = {}
        if is_single:
            settings["invite_required"] = not teams[0].allow_open_invite
        self._report_rest(report)
        return SourceOrganization(
            name=self.name,
            description=clean(teams[0].description or "") if is_single else "",
            created_at=min(findings.began.values(), default=0),
            settings=settings,
            users=tuple(people),
            folders=()
            if is_single
            else tuple(
                SourceFolder(key=team.name, name=clean(_title(team)), order=order)
                for order, team in enumerate(teams)
            ),
            channels=tuple(self._channel_records(findings)),
            subscriptions=tuple(self._subscriptions(people)),
            emoji=tuple(self._emoji_records(report, find_file)),
            profile_fields=(
                SourceProfileField(
                    key=_NICKNAME, kind=FieldKind.SHORT_TEXT, name="Nickname", order=0
                ),
                SourceProfileField(
                    key=_POSITION, kind=FieldKind.SHORT_TEXT, name="Position", order=1
                ),
            ),
        )

    def _report_rest(self, report: ImportReport) -> None:
        left = [user.username for user in self._users if not self._is_member(user)]
        for name in left:
            report.skip("people", "They aren't members of the team.", name)
        favorites = sum(len(direct.favorited_by or ()) for direct in self._directs)
        if favorites:
            reason = "Direct messages can't be pinned here."
            report.skip("favorite direct messages", reason, number=favorites)
        for direct in self._directs:
            if (direct.header or "").strip():
                reason = "Direct messages don't have headers here."
                report.skip("headers of direct messages", reason, clean(direct.header or ""))

    def _people(
        self, findings: Findings, report: ImportReport, find_file: FindFile
    ) -> Iterator[SourceUser]:
        users = {user.username: user for user in self._users}
        administrators = [
            user.username
            for user in self._users
            if "system_admin" in _words(user.roles) and not user.delete_at and self._is_member(user)
        ]
        if not administrators:
            administrators = [
                user.username
                for user in self._users
                if not user.delete_at and "team_admin" in self._team_roles(user)
            ]
            for name in administrators:
                reason = (
                    "The export has no system administrator, so team administrators are owners."
                )
                report.change("people", reason, name)
        services: dict[str, int] = {}
        for user in self._users:
            if self._is_member(user):
                if user.auth_service and not user.delete_at:
                    services[user.auth_service] = services.get(user.auth_service, 0) + 1
                yield self._person(user, user.username in administrators, find_file)
        for service, number in services.items():
            reason = (
                f"They signed in with {clean(service)[:40]}. Set up single sign-on, or have them"
                " set a password."
            )
            report.change("people", reason, number=number)
        for bot in self._bots:
            yield self._bot(bot, bot.owner if bot.owner in users else None, find_file)
        for name in findings.strangers:
            if name in users:
                report.change("people", "They left the team, so they're deactivated.", name)
                yield self._person(users[name], False, find_file, is_active=False)
            else:
                reason = "They wrote messages, but aren't in the export."
                report.change("people", reason, name)
                yield SourceUser(
                    key=name, full_name=clean(name), is_active=False, is_placeholder=True
                )

    def _team_roles(self, user: BulkUser) -> list[str]:
        teams: list[BulkTeamMembership] = [t for t in user.teams or () if t.name in self._teams]
        return [role for team in teams for role in _words(team.roles)]

    def _role(self, user: BulkUser, is_owner: bool) -> Role:
        roles, team_roles = _words(user.roles), self._team_roles(user)
        if is_owner:
            return Role.OWNER
        if "system_admin" in roles:
            return Role.ADMINISTRATOR
        if "team_admin" in team_roles:
            return Role.ADMINISTRATOR if len(self._teams) == 1 else Role.MODERATOR
        is_guest = "system_guest" in roles or (
            "team_guest" in team_roles and "team_user" not in team_roles
        )
        return Role.GUEST if is_guest else Role.MEMBER

    def _person(
        self, user: BulkUser, is_owner: bool, find_file: FindFile, *, is_active: bool = True
    ) -> SourceUser:
        nickname = clean(user.nickname or "").strip()
        full_name = clean(f"{user.first_name or ''} {user.last_name or ''}").strip()
        props = user.notify_props or BulkNotifyProps()
        profile = {_NICKNAME: nickname, _POSITION: clean(user.position or "").strip()}
        return SourceUser(
            key=user.username,
            full_name=full_name or nickname or user.username,
            address=clean(user.email or ""),
            role=self._role(user, is_owner),
            is_active=is_active and not user.delete_at,
            avatar=_picture(user.profile_image, find_file),
            settings=_settings(user, props),
            profile={key: value[:50] for key, value in profile.items() if value},
            alert_words=_alert_words(user, props),
            status=_status(user),
        )

    def _bot(self, bot: BulkBot, owner: str | None, find_file: FindFile) -> SourceUser:
        return SourceUser(
            key=bot.username,
            full_name=clean(bot.display_name or "").strip() or bot.username,
            is_active=not bot.delete_at,
            avatar=_picture(bot.profile_image, find_file),
            bot=SourceBot(kind=BotKind.GENERIC, owner=owner),
            invitable=False,
        )

    def _channel_records(self, findings: Findings) -> Iterator[SourceChannel]:
        shown: dict[str, int] = {}
        for channel in self._channels:
            name = _title(channel).strip().casefold()
            shown[name] = shown.get(name, 0) + 1
        administrators: dict[str, list[str]] = {}
        for user in self._users:
            for key, membership in self._memberships(user):
                if "channel_admin" in _words(membership.roles):
                    administrators.setdefault(key, []).append(user.username)
        for channel in self._channels:
            key, name = _key(channel), clean(_title(channel)).strip()
            if shown[_title(channel).strip().casefold()] > 1:
                name = f"{clean(_title(self._teams[channel.team]))} / {name}"
            texts = (
                " ".join(clean(text or "").split()) for text in (channel.purpose, channel.header)
            )
            holders = Holders(people=tuple(administrators.get(key, ())))
            yield SourceChannel(
                key=key,
                name=name[: names.MAX_CHANNEL_NAME],
                description=" · ".join(text for text in texts if text),
                created_at=findings.began.get(key, 0),
                is_private=channel.type == "P",
                is_archived=bool(channel.deleted_at),
                is_default=channel.type != "P" and channel.name in DEFAULT_CHANNELS,
                folder=None if len(self._teams) == 1 else channel.team,
                permissions={"can_administer_channel_group": holders} if holders.people else {},
            )

    def _subscriptions(self, people: list[SourceUser]) -> Iterator[SourceSubscription]:
        keys = {person.key for person in people}
        channels = set(map(_key, self._channels))
        for user in self._users:
            if user.username not in keys:
                continue
            for key, item in self._memberships(user):
                if key in channels:
                    props = item.notify_props or BulkNotifyProps()
                    chosen = {"all": True, "none": False, "mention": False}
                    given = {
                        "desktop_notifications": chosen.get(props.desktop or ""),
                        "push_notifications": chosen.get(props.mobile or ""),
                        "email_notifications": False if props.email == "false" else None,
                    }
                    settings = {n: value for n, value in given.items() if value is not None}
                    yield SourceSubscription(
                        channel=key,
                        user=user.username,
                        is_muted=props.mark_unread == "mention",
                        pin_to_top=bool(item.favorite),
                        settings=settings or NO_SETTINGS,
                    )

    def _emoji_records(self, report: ImportReport, find_file: FindFile) -> Iterator[SourceEmoji]:
        for emoji in self._emoji.values():
            name = emoji.name.lower()
            if not _EMOJI_NAME.fullmatch(name) or len(name) > 100:
                report.skip("custom emoji", "The name isn't allowed here.", emoji.name)
                continue
            place = find_file(emoji.image) or emoji.image
            yield SourceEmoji(key=f":{emoji.name}:", name=name, file=SourceFile(place=place))


def _key(channel: BulkChannel) -> str:
    return f"{channel.team}/{channel.name}"


def _title(item: BulkTeam | BulkChannel) -> str:
    return item.display_name or item.name


def _words(text: str | None) -> list[str]:
    return (text or "").split()


def _members(direct: BulkDirectChannel) -> set[str]:
    return {
        *(direct.members or ()),
        *(participant.username for participant in direct.participants or ()),
    }


def _picture(path: str | None, find_file: FindFile) -> SourceFile | None:
    place = find_file(path) if path else None
    return None if place is None else SourceFile(place=place)


def _settings(user: BulkUser, props: BulkNotifyProps) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    language = (user.locale or "").lower().replace("_", "-")
    for text in (language, language.partition("-")[0]):
        if text in LANGUAGES:
            settings["default_language"] = text
            break
    if user.military_time in {"true", "false"}:
        settings["twenty_four_hour_time"] = user.military_time == "true"
    if props.desktop == "all":
        settings["enable_channel_desktop_notifications"] = True
    elif props.desktop == "none":
        settings["enable_desktop_notifications"] = False
    if props.mobile == "all":
        settings["enable_channel_push_notifications"] = True
    elif props.mobile == "none":
        settings["enable_offline_push_notifications"] = False
    if props.email == "false":
        settings["enable_offline_email_notifications"] = False
    if props.channel == "false":
        settings["wildcard_mentions_notify"] = False
    return settings


def _alert_words(user: BulkUser, props: BulkNotifyProps) -> tuple[str, ...]:
    """Return someone's alert words, without their user name, which counts as a mention here."""
    names = {user.username, f"@{user.username}"}
    words = (clean(text).strip() for text in (props.mention_keys or "").split(","))
    return tuple(dict.fromkeys(w[:100] for w in words if w and w.lower() not in names))[:100]


def _status(user: BulkUser) -> SourceStatus | None:
    status = user.custom_status
    if status is None or not (status.text or status.emoji):
        return None
    if status.expires_at and not status.expires_at.startswith("0001"):
        try:
            expires = datetime.fromisoformat(status.expires_at)
        except ValueError:
            return None
        if expires.tzinfo is None or expires < datetime.now(expires.tzinfo):
            return None
    known = emoji_named(status.emoji) if status.emoji else None
    name = known.name if known else status.emoji or ""
    return SourceStatus(text=clean(status.text or "").strip()[:60], emoji=name)
