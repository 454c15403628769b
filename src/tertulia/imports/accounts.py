"""The changes that create accounts, with what belongs to each person."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tertulia.domain import names
from tertulia.domain.accounts import bots, personal, personal_settings, profiles
from tertulia.domain.accounts.profiles import ProfileUpdate
from tertulia.domain.organization import emoji
from tertulia.embedded import catalog
from tertulia.imports.context import ImportContext
from tertulia.imports.records import Key, SourceBot, SourceStatus, SourceUser
from tertulia.imports.values import TakenNames, storable
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.errors import Refused
from tertulia.model.imports import PLACEHOLDER_HOST
from tertulia.model.personal import MutedUser
from tertulia.model.profiles import FieldKind
from tertulia.model.reactions import Emoji, EmojiKind
from tertulia.model.users import Bot, BotKind, PersonalSettings, Role, User
from tertulia.model.webhooks import EmbeddedService, OutgoingService, ServiceFormat
from tertulia.state.decision import CommandContext
from tertulia.store.bots import StorageChanged, in_parts

MAX_ONBOARDING_STEPS: Final = 100


class AccountChanges:
    """Makes the changes for a list of people and bots."""

    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._founder = self._chosen_owner()
        self._bot_names: TakenNames | None = None

    def users(self) -> list[SourceUser]:
        """Return the people and bots without an account here. Each appears once, and owners come
        first, before their bots."""
        users: dict[int, SourceUser] = {}
        for user in sorted(self._context.source.users, key=lambda user: user.bot is not None):
            user_id = self._context.ids.find("user", user.key)
            if user_id is not None and user_id not in self._context.state.users:
                users.setdefault(user_id, user)
        return list(users.values())

    def created(self, users: Sequence[SourceUser], avatars: Mapping[int, str]) -> list[AnyChange]:
        """Return the changes that create these accounts. `avatars` are stored pictures by user
        ID."""
        changes: list[AnyChange] = []
        for user in users:
            user_id = self._context.ids.find("user", user.key)
            if user_id is not None:
                changes.append(self._created(user, user_id, avatars.get(user_id, "")))
        return changes

    def _created(self, source: SourceUser, user_id: int, avatar: str) -> AnyChange:
        bot = None if source.bot is None else self._bot(source, source.bot)
        user = User(
            id=user_id,
            address=self._address(source, user_id),
            full_name=self._full_name(source, user_id),
            role=self._role(source),
            joined_at=self._context.checks.seconds(source.joined_at),
            joined_elsewhere=True,
            awaits_arrival=bot is None and source.is_active,
            is_active=source.is_active,
            is_placeholder=source.is_placeholder,
            timezone=self._timezone(source),
            avatar_source="U" if avatar else "G" if source.uses_gravatar else "J",
            avatar_file=avatar,
            bot=bot,
        )
        settings = self._context.checks.personal_settings(
            "personal settings", source.settings, source.full_name
        )
        defaults = self._context.state.default_settings
        self._context.report.count("bots" if bot else "people")
        return changes.UserCreated(
            user=user,
            credential=self._context.secrets.credential(user_id, is_bot=bot is not None),
            settings=_revised(replace(defaults, user_id=user_id), settings),
            group_ids=self._context.state.memberships.system_groups_of(user),
        )

    def _full_name(self, source: SourceUser, user_id: int) -> str:
        if self._bot_names is None:
            bots = map(self._context.state.users.__getitem__, self._context.state.users.bots)
            self._bot_names = TakenNames(bot.full_name for bot in bots if bot.is_system_bot)
        kind = "people" if source.bot is None else "bots"
        name = self._context.checks.name(
            kind,
            source.full_name,
            names.full_name,
            names.MAX_FULL_NAME,
            otherwise=f"User {user_id}",
        )
        if self._bot_names.has(name):
            self._context.report.change(
                kind, "The name is reserved for the server's own bots.", name
            )
            return f"{name} ({user_id})"
        return name

    def _timezone(self, source: SourceUser) -> str:
        try:
            return personal_settings.timezone(source.timezone)
        except Refused:
            self._context.report.change("people", "The time zone doesn't exist.", source.timezone)
            return ""

    def _address(self, source: SourceUser, user_id: int) -> str:
        kind = "people" if source.bot is None else "bots"
        if source.address:
            try:
                address = names.address(source.address)
            except Refused:
                self._context.report.change(kind, "The email address isn't valid.", source.address)
            else:
                if self._context.state.user_with_address(address) is None:
                    return address
                self._context.report.change(
                    kind,
                    "Another account here has this email address, so they can't sign in.",
                    address,
                )
        elif source.bot is None and source.is_active:
            self._context.report.change(
                kind, "No email address is known, so they can't sign in.", source.full_name
            )
        return f"user{user_id}@{PLACEHOLDER_HOST}"

    # Roles

    def _chosen_owner(self) -> Key | None:
        """Return the person who becomes the owner if a new organization has none: the active person
        with the highest role who joined first."""
        people = [
            user for user in self._context.source.users if user.bot is None and user.is_active
        ]
        if (
            not self._context.is_new
            or not people
            or any(person.role is Role.OWNER for person in people)
        ):
            return None
        return min(
            people,
            key=lambda source: (
                source.role,
                source.joined_at or self._context.now,
                str(source.key),
            ),
        ).key

    def _role(self, source: SourceUser) -> Role:
        if source.key == self._founder:
            self._context.report.change(
                "people",
                "The export has no active owner, so someone else became the owner.",
                source.full_name,
            )
            return Role.OWNER
        if not self._context.is_new and source.role < Role.MODERATOR:
            self._context.report.change(
                "people",
                "Owners and administrators elsewhere are members here until someone changes their"
                " role.",
                source.full_name,
            )
            return Role.MEMBER
        return source.role

    # Bots

    def _bot(self, source: SourceUser, bot: SourceBot) -> Bot:
        owner_id = self._context.ids.find("user", bot.owner)
        if owner_id is None:
            owner_id = self._context.ids.find("user", self._founder) or self.first_owner
            self._context.report.change(
                "bots",
                "The owner isn't in the export, so it belongs to an owner here.",
                source.full_name,
            )
        made = Bot(
            kind=bot.kind,
            owner_id=owner_id,
            default_all_public_channels=bot.default_all_public_channels,
        )
        if bot.kind is BotKind.OUTGOING_WEBHOOK:
            try:
                url = bots.service_url(bot.service_url)
            except Refused:
                self._context.report.change(
                    "bots",
                    "It became a generic bot because its service's URL is invalid.",
                    bot.service_url,
                )
                return replace(made, kind=BotKind.GENERIC)
            form = ServiceFormat.SLACK if bot.service_is_slack else ServiceFormat.NATIVE
            token = self._context.secrets.sealed(bot.token or self._context.secrets.nonce())
            return replace(made, service=OutgoingService(url=url, format=form, token_sealed=token))
        if bot.kind is BotKind.EMBEDDED:
            if bot.program not in catalog.runnable():
                self._context.report.change(
                    "bots",
                    "It became a generic bot because its program isn't available.",
                    bot.program,
                )
                return replace(made, kind=BotKind.GENERIC)
            values = {key: self._context.secrets.sealed(value) for key, value in bot.config.items()}
            return replace(
                made, embedded=EmbeddedService(program=bot.program, settings_sealed=values)
            )
        return made

    @property
    def first_owner(self) -> int | None:
        """The active owner with the oldest account, here or in the export."""
        users = self._context.state.users
        owners = [
            value for value in users.active_by_role.keys(Role.OWNER) if not users[value].is_bot
        ]
        if owners:
            return int(min(owners))
        keys = [
            source
            for source in self._context.source.users
            if source.role is Role.OWNER and source.is_active
        ]
        return self._context.ids.find("user", keys[0].key) if keys else None

    # What belongs to each person

    def personal(self) -> Iterator[AnyChange]:
        """Yield the changes for people's other data, such as settings and alert words."""
        for user in self._context.source.users:
            user_id = self._context.ids.find("user", user.key)
            if (
                user_id is None
                or user_id not in self._context.state.users
                or self._context.ids.find("matched", user.key) is not None
            ):
                continue
            yield from self._profile(user, user_id)
            yield from self._lists(user, user_id)
            yield from self._status(user, user_id)
            if user.bot is not None:
                yield from self._default_channels(user.bot, user_id)

    def _profile(self, source: SourceUser, user_id: int) -> Iterator[AnyChange]:
        user = self._context.state.users[user_id]
        context = CommandContext(self._context.state, self._context.now, self.first_owner)
        for key, value in self._context.report.each(source.profile.items()):
            field = self._context.state.profile_fields.get(self._context.ids.find("field", key))
            if field is None:
                continue
            given: str | tuple[int, ...] = storable(value)
            if field.kind is FieldKind.PEOPLE:
                given = self._active_people(value)
            try:
                profile = ProfileUpdate(
                    values=((field.id, given),), render=self._context.checks.render
                )
                yield from profiles.profile_changes(context, user, profile)
            except Refused as refusal:
                self._context.report.skip("profile values", str(refusal), source.full_name)

    def _active_people(self, value: str) -> tuple[int, ...]:
        try:
            keys = msgspec.json.decode(value, type=list[int | str])
        except (msgspec.DecodeError, RecursionError):
            return ()
        result = (self._context.ids.find("user", key) for key in dict.fromkeys(keys))
        users = (self._context.state.users.get(user_id) for user_id in result)
        return tuple(u.id for u in users if u is not None and u.is_active and not u.is_bot)

    def _lists(self, source: SourceUser, user_id: int) -> Iterator[AnyChange]:
        self._context.report.begin_record()
        words: dict[str, str] = {}
        for word in map(str.strip, map(storable, source.alert_words)):
            if 0 < len(word) <= personal.MAX_LENGTH and len(words) < personal.MAX_ALERT_WORDS:
                words.setdefault(word.casefold(), word)
            else:
                self._context.report.skip(
                    "alert words", "It is too long, or there are too many.", word
                )
        if words:
            yield changes.AlertWordsChanged(user_id=user_id, words=tuple(words.values()))
        muted = self._context.state.tables["muted_users"]
        for key, since in source.muted.items():
            muted_id = self._context.ids.find("user", key)
            if muted_id not in {user_id, 0, None} and (user_id, muted_id) not in muted:
                yield changes.UserMuted(
                    muted=MutedUser(
                        user_id=user_id,
                        muted_id=muted_id,
                        since=self._context.checks.seconds(since),
                    )
                )
        for step in source.onboarding_steps[:MAX_ONBOARDING_STEPS]:
            yield changes.OnboardingStepTaken(user_id=user_id, name=storable(step)[:100])

    def _status(self, source: SourceUser, user_id: int) -> Iterator[AnyChange]:
        status = source.status
        if status is None:
            return
        self._context.report.begin_record()
        text = storable(status.text).strip()[: personal.MAX_STATUS_TEXT]
        emoji = None
        if status.emoji:
            try:
                emoji = self._emoji(status)
            except Refused as refusal:
                self._context.report.skip("statuses", str(refusal), source.full_name)
        if text or emoji is not None:
            yield changes.StatusChanged(user_id=user_id, text=text or None, emoji=emoji)

    def _emoji(self, status: SourceStatus) -> Emoji:
        code: str | None = status.code
        if code and status.kind is EmojiKind.CUSTOM:
            code = str(
                self._context.ids.find("emoji", int(code) if code.isdecimal() else code) or ""
            )
        if not code:
            return emoji.find_emoji(self._context.state, status.emoji, None, None)
        return emoji.find_emoji(self._context.state, status.emoji, code, status.kind)

    def _default_channels(self, source: SourceBot, user_id: int) -> Iterator[AnyChange]:
        bot = self._context.state.users[user_id].bot
        if bot is None:
            return
        changed = replace(
            bot,
            default_sending_channel_id=self._context.ids.find("channel", source.default_channel),
            default_events_channel_id=self._context.ids.find(
                "channel", source.default_events_channel
            ),
        )
        if changed != bot:
            yield changes.UserChanged(user_id=user_id, values={"bot": changed}, was={"bot": bot})

    def storage(self) -> Iterator[StorageChanged]:
        """Yield the changes that store the values that new bots have saved."""
        for user in self._context.source.users:
            user_id = self._context.ids.find("user", user.key)
            if user.bot is None or self._context.ids.find("matched", user.key) is not None:
                continue
            if user.bot.storage and user_id is not None:
                yield from in_parts(StorageChanged(user_id, user.bot.storage))


def _revised(settings: PersonalSettings, values: Mapping[str, Any]) -> PersonalSettings:
    return replace(settings, **values)
