"""Rocket.Chat's people, rooms, and teams as an organization."""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tertulia.domain.organization.lifecycle import LANGUAGES
from tertulia.imports.records import (
    NO_SETTINGS,
    Holders,
    Key,
    SourceBot,
    SourceChannel,
    SourceEmoji,
    SourceFile,
    SourceFolder,
    SourceGroup,
    SourceOrganization,
    SourceProfileField,
    SourceStatus,
    SourceSubscription,
    SourceUser,
)
from tertulia.imports.references import clean
from tertulia.imports.report import ImportReport
from tertulia.imports.rocketchat.documents import (
    RocketAvatar,
    RocketEmoji,
    RocketRoom,
    RocketSubscription,
    RocketTeam,
    RocketTeamMember,
    RocketUser,
    read_documents,
)
from tertulia.imports.rocketchat.dump import Dump, GridFiles
from tertulia.imports.rocketchat.messages import RoomPlace
from tertulia.imports.sorting import Findings, UnreadMarks, milliseconds
from tertulia.imports.source import require_unique
from tertulia.model.profiles import FieldKind
from tertulia.model.users import BotKind, Role

_EMOJI_NAME: Final = re.compile(r"[0-9a-z_-]*[0-9a-z]")
_NICKNAME: Final = "nickname"
_BIO: Final = "bio"
_DEEPEST: Final = 20
"""The most levels of nested discussions."""
_LEADERS: Final = frozenset({"owner", "moderator"})
_MALFORMED: Final = "They aren't in Rocket.Chat's format."
_NOT_CHANNELS: Final = {
    "l": "They are live chats with visitors.",
    "v": "They are phone calls with visitors.",
}


class RocketOrganizationReader:
    """Reads everything except messages. Reports what can't be imported."""

    def __init__(self, dump: Dump, grid: GridFiles, report: ImportReport) -> None:
        self._dump = dump
        self._grid = grid
        self._report = report
        self._settings = {
            fields["_id"]: fields.get("value")
            for fields in dump.read("rocketchat_settings", {"_id", "value"})
            if fields.get("_id") == "Site_Name"
        }
        self.users = list(self._read_users())
        require_unique([user.key for user in self.users], "people")
        self.teams = list(read_documents(dump, "rocketchat_team", RocketTeam, self._bad("teams")))
        require_unique([team.id for team in self.teams], "teams")
        rooms = list(read_documents(dump, "rocketchat_room", RocketRoom, self._bad("rooms")))
        require_unique([room.id for room in rooms], "rooms")
        self._rooms = {room.id: room for room in rooms}
        members: dict[str, set[str]] = {}
        self._leaders: dict[str, list[str]] = {}
        for subscription in self._subscriptions(self._bad("subscriptions")):
            # Equal texts are one object, to save memory.
            user = sys.intern(subscription.u.id)
            members.setdefault(subscription.rid, set()).add(user)
            if _LEADERS & set(subscription.roles or ()):
                self._leaders.setdefault(subscription.rid, []).append(user)
        self._members = {room: frozenset(members.pop(room)) for room in [*members]}
        self.places = {room.id: self._place(room) for room in rooms}

    @property
    def name(self) -> str:
        """The organization's name."""
        value = self._settings.get("Site_Name")
        return clean(value).strip() if isinstance(value, str) and value.strip() else "Rocket.Chat"

    def people_by_name(self) -> dict[str, str]:
        """Return the keys of people by user name."""
        return self._names

    def rooms_by_name(self) -> dict[str, str]:
        """Return the keys of channels by the names that messages use for them."""
        return {
            room.name: room.id
            for room in self._rooms.values()
            if room.name and self._is_channel(room.id)
        }

    def note_reading(self, unread: UnreadMarks) -> None:
        """Record when people last read their rooms."""
        active = {user.key for user in self.users if user.is_active}
        for subscription in self._subscriptions(lambda _: None):
            place = self.places.get(subscription.rid)
            has_unread = subscription.alert or subscription.unread
            if (
                place is None
                or place.discussion
                or not has_unread
                or subscription.u.id not in active
            ):
                continue
            key = place.channel if place.channel is not None else place.people
            unread.read(key, subscription.u.id, (milliseconds(subscription.ls) or 0) // 1000)

    def _bad(self, kind: str) -> Any:
        return lambda sample: self._report.skip(kind, _MALFORMED, sample)

    def _subscriptions(self, skip: Any) -> Iterator[RocketSubscription]:
        return read_documents(self._dump, "rocketchat_subscription", RocketSubscription, skip)

    # People

    def _read_users(self) -> Iterator[SourceUser]:
        avatars: dict[str, str] = {}
        for avatar in read_documents(
            self._dump, "rocketchat_avatars", RocketAvatar, self._bad("avatars")
        ):
            if avatar.user_id and self._grid.has("avatars", avatar.id):
                avatars[avatar.user_id] = f"grid/avatars/{avatar.id}"
        self._names: dict[str, str] = {}
        for user in read_documents(self._dump, "users", RocketUser, self._bad("people")):
            if user.type in {"visitor", "unknown"}:
                reason = "They are visitors of live chats."
                self._report.skip("people", reason, clean(user.username or user.id))
                continue
            if user.username:
                self._names[user.username] = user.id
            if user.federated:
                reason = "They are on other servers, so they're deactivated."
                self._report.change("people", reason, clean(user.username or user.id))
            place = avatars.get(user.id)
            yield _person(user, None if place is None else SourceFile(place=place))

    # Rooms

    def _is_channel(self, room_id: str) -> bool:
        return self.places[room_id].channel == room_id

    def _place(self, room: RocketRoom) -> RoomPlace:
        root = self._root(room)
        if root.t in _NOT_CHANNELS:
            return RoomPlace(skipped=_NOT_CHANNELS[root.t])
        if root.t == "d":
            people = self._people_of(root)
            if not people:
                return RoomPlace(skipped="The dump doesn't say who is in the conversation.")
            return RoomPlace(people=people, members=frozenset(map(str, people)), is_private=True)
        if root.t not in {"c", "p"}:
            return RoomPlace(skipped="They are in rooms of an unknown kind.")
        is_topic = root is not room and not (room.t == "p" and root.t == "c")
        place = root if is_topic else room
        return RoomPlace(
            channel=place.id,
            discussion=room.id if is_topic else "",
            title=_title(room) if is_topic else "",
            members=self._members.get(place.id, frozenset()),
            is_private=place.t == "p",
        )

    def _root(self, room: RocketRoom) -> RocketRoom:
        """Return the room that a discussion belongs to, through nested discussions."""
        target = room
        for _ in range(_DEEPEST):
            parent = self._rooms.get(target.prid or "")
            if parent is None:
                break
            target = parent
        return target

    def _people_of(self, room: RocketRoom) -> tuple[Key, ...]:
        keys = room.uids or [
            self._names[username] for username in room.usernames or () if username in self._names
        ]
        return tuple(sorted(set(keys) or self._members.get(room.id, frozenset())))

    def _channels(self) -> Iterator[SourceChannel]:
        teams = {team.id for team in self.teams}
        for room in self._rooms.values():
            place = self.places[room.id]
            if place.discussion:
                self._report.change(
                    "discussions", "They became topics of their channel.", _title(room)
                )
            if not self._is_channel(room.id):
                continue
            if room.prid:
                reason = "They aren't in a channel with the same members, so they became channels."
                self._report.change("discussions", reason, _title(room))
            leaders = tuple(dict.fromkeys(self._leaders.get(room.id, ())))
            permissions: dict[str, Holders] = {}
            if leaders:
                permissions["can_administer_channel_group"] = Holders(people=leaders)
            if room.ro:
                permissions["can_send_message_group"] = Holders(
                    people=leaders, groups=("role:administrators",)
                )
            texts = (room.description, room.topic, room.announcement)
            written = (" ".join(clean(text or "").split()) for text in texts)
            yield SourceChannel(
                key=room.id,
                name=_title(room),
                description=" · ".join(dict.fromkeys(text for text in written if text)),
                created_at=(milliseconds(room.ts) or 0) // 1000,
                creator=room.u.id if room.u else None,
                is_private=room.t == "p",
                is_archived=bool(room.archived),
                is_default=bool(room.default) and room.t == "c",
                folder=room.team_id if room.team_id in teams else None,
                permissions=permissions,
            )

    def _subscription_records(self) -> Iterator[SourceSubscription]:
        seen: set[tuple[str, str]] = set()
        favorites = 0
        for subscription in self._subscriptions(lambda _: None):
            place = self.places.get(subscription.rid)
            if (
                place is None
                or place.channel != subscription.rid
                or (subscription.rid, subscription.u.id) in seen
            ):
                favorites += bool(subscription.f)
                continue
            user = sys.intern(subscription.u.id)
            seen.add((place.channel, user))
            chosen = {"all": True, "nothing": False, "mentions": False}
            given = {
                "desktop_notifications": chosen.get(subscription.desktop_notifications or ""),
                "push_notifications": chosen.get(subscription.mobile_push_notifications or ""),
                "email_notifications": chosen.get(subscription.email_notifications or ""),
            }
            settings = {name: value for name, value in given.items() if value is not None}
            yield SourceSubscription(
                channel=place.channel,
                user=user,
                is_muted=bool(
                    subscription.disable_notifications or subscription.hide_unread_status
                ),
                pin_to_top=bool(subscription.f),
                settings=settings or NO_SETTINGS,
            )
        if favorites:
            reason = "Only channels can be pinned here."
            self._report.skip("favorites", reason, number=favorites)

    # The rest

    def organization(self, findings: Findings) -> SourceOrganization:
        """Return everything except messages."""
        users = [*self.users, *self._strangers(findings.strangers)]
        return SourceOrganization(
            name=self.name,
            created_at=min(
                (user.joined_at for user in self.users if user.joined_at),
                default=min(findings.began.values(), default=0),
            ),
            users=tuple(users),
            groups=tuple(self._groups()),
            folders=tuple(
                SourceFolder(key=team.id, name=clean(team.name), order=order)
                for order, team in enumerate(self.teams)
            ),
            channels=tuple(self._channels()),
            subscriptions=tuple(self._subscription_records()),
            emoji=tuple(self._emoji()),
            profile_fields=(
                SourceProfileField(
                    key=_NICKNAME, kind=FieldKind.SHORT_TEXT, name="Nickname", order=0
                ),
                SourceProfileField(key=_BIO, kind=FieldKind.LONG_TEXT, name="About", order=1),
            ),
        )

    def _strangers(self, strangers: Mapping[str, str]) -> Iterator[SourceUser]:
        for key, name in strangers.items():
            reason = "They wrote messages, but aren't in the dump."
            self._report.change("people", reason, clean(name))
            yield SourceUser(key=key, full_name=clean(name), is_active=False, is_placeholder=True)

    def _groups(self) -> Iterator[SourceGroup]:
        members: dict[str, list[Key]] = {}
        for document in read_documents(
            self._dump, "rocketchat_team_member", RocketTeamMember, self._bad("members of teams")
        ):
            members.setdefault(document.team_id, []).append(document.user_id)
        for team in self.teams:
            people = tuple(dict.fromkeys(members.get(team.id, ())))
            yield SourceGroup(key=team.id, name=clean(team.name), members=people)

    def emoji_names(self) -> set[str]:
        """Return the names of custom emoji."""
        return {record.name for record in self._emoji_records(lambda _: None)}

    def _emoji_records(self, skip: Any) -> Iterator[RocketEmoji]:
        for document in read_documents(self._dump, "rocketchat_custom_emoji", RocketEmoji, skip):
            for name in dict.fromkeys((document.name, *(document.aliases or ()))):
                yield RocketEmoji(
                    name=name, extension=f"{document.name}.{document.extension or 'png'}"
                )

    def _emoji(self) -> Iterator[SourceEmoji]:
        seen: set[str] = set()
        for record in self._emoji_records(self._bad("custom emoji")):
            name = record.name.lower()
            if name in seen:
                continue
            seen.add(name)
            if not _EMOJI_NAME.fullmatch(name) or len(name) > 100:
                self._report.skip(
                    "custom emoji", "The name isn't allowed here.", clean(record.name)
                )
                continue
            file = SourceFile(place=f"grid/emoji/{record.extension}")
            yield SourceEmoji(key=f":{record.name}:", name=name, file=file)


def _title(room: RocketRoom) -> str:
    return clean(room.fname or room.name or room.id).strip()


def _person(user: RocketUser, avatar: SourceFile | None) -> SourceUser:
    is_bot = user.type in {"bot", "app"}
    roles = set(user.roles or ())
    role = Role.OWNER if "admin" in roles else Role.GUEST if "guest" in roles else Role.MEMBER
    settings = user.settings or {}
    preferences = settings.get("preferences")
    preferences = preferences if isinstance(preferences, dict) else {}
    profile: dict[Key, str] = {}
    for key, value, longest in ((_NICKNAME, user.nickname, 50), (_BIO, user.bio, 500)):
        if clean(value or "").strip():
            profile[key] = clean(value or "").strip()[:longest]
    highlights = preferences.get("highlights")
    words = (
        [highlight for highlight in highlights if isinstance(highlight, str)]
        if isinstance(highlights, list)
        else []
    )
    status = clean(user.status_text or "").strip()[:60]
    return SourceUser(
        key=user.id,
        full_name=clean(user.name or "").strip() or clean(user.username or user.id),
        address=next((clean(email.address or "") for email in user.emails or ()), ""),
        role=Role.MEMBER if is_bot else role,
        is_active=user.active is not False and not user.federated,
        joined_at=(milliseconds(user.created_at) or 0) // 1000,
        avatar=avatar,
        bot=SourceBot(kind=BotKind.GENERIC) if is_bot else None,
        settings=_settings(user, preferences),
        profile=profile,
        alert_words=tuple(dict.fromkeys(clean(w).strip()[:100] for w in words if w.strip()))[:100],
        status=SourceStatus(text=status) if status else None,
        invitable=not is_bot,
    )


def _settings(user: RocketUser, preferences: Mapping[str, Any]) -> dict[str, Any]:
    def given(*names: str) -> Any:
        return next((preferences[name] for name in names if name in preferences), None)

    settings: dict[str, Any] = {}
    language = (user.language or "").lower().replace("_", "-")
    for text in (language, language.partition("-")[0]):
        if text in LANGUAGES:
            settings["default_language"] = text
            break
    match given("desktopNotifications"):
        case "all":
            settings["enable_channel_desktop_notifications"] = True
        case "nothing":
            settings["enable_desktop_notifications"] = False
    match given("pushNotifications", "mobileNotifications"):
        case "all":
            settings["enable_channel_push_notifications"] = True
        case "nothing":
            settings["enable_offline_push_notifications"] = False
    if given("emailNotificationMode") in ("nothing", "disabled"):
        settings["enable_offline_email_notifications"] = False
    clock, enter, theme = given("clockMode"), given("sendOnEnter"), given("themeAppearence")
    if clock in (1, 2):
        settings["twenty_four_hour_time"] = clock == 2
    if enter in ("normal", "alternative"):
        settings["enter_sends"] = enter == "normal"
    if theme in ("dark", "light"):
        settings["color_scheme"] = 2 if theme == "dark" else 3
    if isinstance(given("convertAsciiEmoji"), bool):
        settings["translate_emoticons"] = given("convertAsciiEmoji")
    return settings
