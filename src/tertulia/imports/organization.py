"""The changes that create everything but messages."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from tertulia.domain import names
from tertulia.domain.accounts import bots
from tertulia.domain.channels import subscription_changes
from tertulia.domain.organization import emoji, realms
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.records import (
    Holders,
    SourceBot,
    SourceChannel,
    SourceFile,
    SourceOrganization,
    SourceSubscription,
    SourceUser,
)
from tertulia.imports.report import ImportReport
from tertulia.markup.render import Renderer
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel
from tertulia.model.drafts import SavedDraft, Snippet
from tertulia.model.errors import Refused
from tertulia.model.folders import ChannelFolder
from tertulia.model.groups import SYSTEM_GROUPS, UserGroup
from tertulia.model.organization import Domain, Linkifier, Playground, Realm, RealmPicture
from tertulia.model.personal import MutedUser, NavigationView
from tertulia.model.profiles import FieldKind, ProfileField, ProfileValue
from tertulia.model.reactions import CustomEmoji, Emoji
from tertulia.model.scheduled import ScheduledMessage
from tertulia.model.user_topics import Visibility
from tertulia.model.users import Bot, BotKind, Credential, PersonalSettings, User
from tertulia.model.webhooks import EmbeddedService, OutgoingService, ServiceFormat
from tertulia.service.credentials import Vault
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tertulia.store.bots import StorageChanged, in_parts

PLACEHOLDER_HOST: Final = "imported.invalid"
"""The host in the addresses of people whose address is unknown. It can't receive mail."""
_SYSTEM_BOTS: Final = {
    "notification": realms.NOTIFICATION_BOT,
    "welcome": realms.WELCOME_BOT,
    "email": realms.EMAIL_GATEWAY,
}


class Pictures(Struct, kw_only=True):
    """Pictures that were stored before the changes: the names of their files."""

    avatars: dict[int, str] = {}
    """By user ID."""
    emoji: dict[int, tuple[str, str]] = {}
    """File and still image, by the emoji's ID."""
    realm: dict[str, str] = {}
    """By the field of `Realm`."""


def assign_ids(
    state: State, source: SourceOrganization, ids: Identifiers, *, keep: bool, report: ImportReport
) -> None:
    """Give every record its ID. People whose address has an account are that account."""
    tables: Mapping[str, tuple[str, Iterable[Any]]] = {
        "user": ("users", source.users),
        "group": ("user_groups", source.groups),
        "folder": ("channel_folders", source.folders),
        "channel": ("channels", source.channels),
        "emoji": ("custom_emoji", source.emoji),
        "field": ("profile_fields", source.profile_fields),
        "linkifier": ("linkifiers", source.linkifiers),
        "playground": ("playgrounds", source.playgrounds),
        "draft": ("drafts", source.drafts),
        "snippet": ("snippets", source.snippets),
        "scheduled": ("scheduled_messages", source.scheduled),
        "view": ("navigation_views", source.views),
    }
    for key, bot in source.system_bots.items():
        ids.put("user", key, _SYSTEM_BOTS[bot])
    for user in source.users:
        account = state.user_with_address(user.address) if user.address else None
        if account is not None:
            ids.put("user", user.key, account.id)
            ids.put("matched", user.key, account.id)
            report.count("people who have an account here")
    for kind, (table, records) in tables.items():
        taken = {int(key) for key in state.tables[table].rows}
        if kind == "user" and state.is_empty:
            taken |= set(_SYSTEM_BOTS.values())
        if kind == "group" and state.is_empty:
            taken |= {group.id for group in SYSTEM_GROUPS}
        if not state.is_empty:
            taken |= {state.tables[table].highest}
        changed = ids.assign(kind, [one.key for one in records], taken=taken, keep=keep)
        for key in changed if keep else ():
            report.change(f"{kind}s", "The ID is taken here, so it got another one.", key)


class OrganizationChanges:
    """Makes the changes, in an order in which each can be folded."""

    def __init__(
        self,
        state: State,
        source: SourceOrganization,
        ids: Identifiers,
        pictures: Pictures,
        vault: Vault,
        report: ImportReport,
        now: float,
    ) -> None:
        self._state = state
        self._source = source
        self._ids = ids
        self.pictures = pictures
        self._vault = vault
        self._report = report
        self._now = int(now)
        self._is_new = state.is_empty
        self._renderer = Renderer()

    def founding(self, uuid: str) -> list[AnyChange]:
        """Return the changes that create the organization, if there is none."""
        source = self._source
        now = source.created_at or self._now
        realm = Realm(
            uuid=uuid,
            name=self._text("organization", source.name, names.realm_name, 40) or "Organization",
            created_at=now,
            inline_url_embed_preview=True,
        )
        return [
            changes.RealmCreated(
                realm=realm, groups=SYSTEM_GROUPS, bots=realms.system_bots(self._now)
            )
        ]

    def accounts(self) -> Iterator[AnyChange]:
        """Yield the changes that create accounts, owners of bots before their bots."""
        people = [user for user in self._source.users if user.bot is None]
        bots = [user for user in self._source.users if user.bot is not None]
        for user in (*people, *bots):
            user_id = self._ids.find("user", user.key)
            if user_id is not None and user_id not in self._state.users:
                yield self._account(user, user_id)

    def _account(self, source: SourceUser, user_id: int) -> AnyChange:
        bot = self._bot(source.bot, source.full_name) if source.bot is not None else None
        avatar = self.pictures.avatars.get(user_id, "")
        user = User(
            id=user_id,
            address=self._address(source, user_id),
            full_name=self._text("people", source.full_name, names.full_name, 100)
            or f"User {user_id}",
            role=source.role,
            joined_at=source.joined_at or self._now,
            awaits_arrival=bot is None and source.is_active,
            is_active=source.is_active,
            is_placeholder=source.is_placeholder,
            timezone=source.timezone,
            avatar_source="U" if avatar else "G" if source.uses_gravatar else "J",
            avatar_file=avatar,
            bot=bot,
        )
        settings = self._values(
            source.settings, PersonalSettings, "personal settings", sample=source.full_name
        )
        self._report.count("bots" if bot else "people")
        return changes.UserCreated(
            user=user,
            credential=self._new_credential(user_id, is_bot=bot is not None),
            settings=_revised(PersonalSettings(user_id=user_id), settings),
            group_ids=self._state.memberships.system_groups_of(user),
        )

    def _new_credential(self, user_id: int, *, is_bot: bool) -> Credential:
        key = self._vault.new_key()
        return Credential(
            user_id=user_id,
            key_digest=key.digest,
            key_sealed=key.sealed,
            adopts_key=True,
            adopts_password=not is_bot,
        )

    def _bot(self, source: SourceBot, name: str) -> Bot:
        service = embedded = None
        vault = self._vault
        if source.kind is BotKind.OUTGOING_WEBHOOK:
            try:
                service = OutgoingService(
                    url=bots.service_url(source.service_url),
                    format=ServiceFormat.SLACK if source.service_is_slack else ServiceFormat.NATIVE,
                    token_sealed=vault.sealed(source.token or vault.nonce()),
                )
            except Refused:
                self._report.change(
                    "bots", "The address of its service isn't valid, so it isn't called.", name
                )
        if source.kind is BotKind.EMBEDDED:
            embedded = EmbeddedService(
                program=source.program,
                settings_sealed={key: vault.sealed(value) for key, value in source.config.items()},
            )
        return Bot(
            kind=source.kind,
            owner_id=self._ids.find("user", source.owner),
            default_sending_channel_id=self._ids.find("channel", source.default_channel),
            default_events_channel_id=self._ids.find("channel", source.default_events_channel),
            default_all_public_channels=source.default_all_public_channels,
            service=service,
            embedded=embedded,
        )

    def storage(self) -> Iterator[StorageChanged]:
        """Yield what bots have stored."""
        for user in self._source.users:
            user_id = self._ids.find("user", user.key)
            if user.bot is not None and user.bot.storage and user_id is not None:
                yield from in_parts(StorageChanged(user_id, user.bot.storage))

    def _address(self, source: SourceUser, user_id: int) -> str:
        if source.address:
            try:
                return names.address(source.address)
            except Refused:
                self._report.change(
                    "people", "The email address isn't valid; they can't sign in.", source.address
                )
        else:
            self._report.change(
                "people", "No email address is known; they can't sign in.", source.full_name
            )
        return f"user{user_id}@{PLACEHOLDER_HOST}"

    def groups(self) -> Iterator[AnyChange]:
        """Yield the changes that create the user groups, without subgroups, and then add those: a
        group may contain a later one."""
        for source in self._source.groups:
            group_id = self._ids.find("group", source.key)
            if group_id is None or group_id in self._state.groups:
                continue
            yield changes.UserGroupCreated(
                group=UserGroup(
                    id=group_id,
                    name=self._unique(
                        "groups",
                        source.name,
                        names.group_name,
                        names.MAX_GROUP_NAME,
                        lambda name: any(one.name == name for one in self._state.groups),
                    ),
                    description=source.description[: names.MAX_GROUP_DESCRIPTION],
                    created_at=source.created_at or self._now,
                    creator_id=self._ids.find("user", source.creator),
                    members=self._ids.several("user", source.members),
                    deactivated=source.deactivated,
                )
            )
            self._report.count("groups")
        for source in self._source.groups:
            group_id = self._ids.find("group", source.key)
            if group_id is None:
                continue
            present = set(self._state.groups[group_id].subgroups)
            subgroups = tuple(
                one
                for key in source.subgroups
                if (one := self._ids.group(key)) is not None and one not in present
            )
            if subgroups:
                yield changes.UserGroupMembersChanged(
                    group_id=group_id, added_groups=subgroups, deactivated=source.deactivated
                )
            values = self._permissions(source.permissions, UserGroup)
            if values:
                yield changes.UserGroupChanged(
                    group_id=group_id, values=values, deactivated=source.deactivated
                )

    def channels(self) -> Iterator[AnyChange]:
        """Yield the changes that create folders and channels."""
        for n, folder in enumerate(sorted(self._source.folders, key=lambda one: one.order)):
            folder_id = self._ids.find("folder", folder.key)
            if folder_id is None or folder_id in self._state.folders:
                continue
            yield changes.ChannelFolderCreated(
                folder=ChannelFolder(
                    id=folder_id,
                    name=self._text("folders", folder.name, names.folder_name, 100) or "Folder",
                    description=folder.description,
                    rendered_description=self.html(folder.description),
                    order=len(self._state.folders) + n,
                    created_at=folder.created_at,
                    creator_id=self._ids.find("user", folder.creator),
                    is_archived=folder.is_archived,
                )
            )
            self._report.count("folders")
        taken = {channel.name.casefold() for channel in self._state.channels}
        for channel in self._source.channels:
            channel_id = self._ids.find("channel", channel.key)
            if channel_id is not None and channel_id not in self._state.channels:
                yield self._channel(channel, channel_id, taken)

    def _channel(self, source: SourceChannel, channel_id: int, taken: set[str]) -> AnyChange:
        name = self._unique(
            "channels",
            source.name,
            names.channel_name,
            names.MAX_CHANNEL_NAME,
            lambda one: one.casefold() in taken,
        )
        taken.add(name.casefold())
        self._report.count("channels")
        description = source.description[: names.MAX_CHANNEL_DESCRIPTION]
        channel = Channel(
            id=channel_id,
            name=name,
            description=description,
            rendered_description=self.html(description),
            created_at=source.created_at or self._now,
            creator_id=self._ids.find("user", source.creator),
            is_private=source.is_private,
            is_web_public=source.is_web_public,
            is_archived=source.is_archived,
            is_default=source.is_default and self._is_new,
            history_public=source.history_public,
            retention_days=source.retention_days,
            topics_policy=source.topics_policy,
            folder_id=self._ids.find("folder", source.folder),
        )
        values = self._permissions(source.permissions, Channel)
        return changes.ChannelCreated(channel=replace(channel, **values))

    def rest(self) -> Iterator[AnyChange]:
        """Yield the changes that create everything else but subscriptions."""
        yield from self._organization_lists()
        yield from self._personal()
        if self._is_new:
            yield from self._realm_settings()

    def _organization_lists(self) -> Iterator[AnyChange]:
        source, ids = self._source, self._ids
        for one in source.emoji:
            emoji_id = ids.find("emoji", one.key)
            if emoji_id is None or emoji_id not in self.pictures.emoji:
                continue  # The report says why its picture could not be read.
            file, still = self.pictures.emoji[emoji_id]
            yield changes.CustomEmojiAdded(
                emoji=CustomEmoji(
                    id=emoji_id,
                    name=one.name,
                    file=file,
                    still=still,
                    author_id=ids.find("user", one.author),
                    deactivated=one.deactivated or one.name in self._state.custom_emoji.by_name,
                )
            )
            self._report.count("custom emoji")
        for field in source.profile_fields:
            field_id = ids.find("field", field.key)
            if field_id is not None and field_id not in self._state.tables["profile_fields"]:
                yield changes.ProfileFieldCreated(
                    field=ProfileField(
                        id=field_id,
                        kind=field.kind,
                        name=field.name,
                        hint=field.hint,
                        order=len(self._state.profile_fields) + field.order,
                        **msgspec.convert(field.data, dict[str, Any]),
                    )
                )
                self._report.count("profile fields")
        for linkifier in source.linkifiers:
            linkifier_id = ids.find("linkifier", linkifier.key)
            if linkifier_id is not None and linkifier_id not in self._state.tables["linkifiers"]:
                yield changes.LinkifierSet(
                    linkifier=Linkifier(
                        id=linkifier_id,
                        order=linkifier.order,
                        pattern=linkifier.pattern,
                        url_template=linkifier.url_template,
                        **msgspec.convert(linkifier.data, dict[str, Any]),
                    )
                )
                self._report.count("linkifiers")
        for playground in source.playgrounds:
            playground_id = ids.find("playground", playground.key)
            if playground_id is not None and playground_id not in self._state.tables["playgrounds"]:
                yield changes.PlaygroundAdded(
                    playground=Playground(
                        id=playground_id,
                        name=playground.name,
                        language=playground.language,
                        url_template=playground.url_template,
                    )
                )
                self._report.count("playgrounds")
        known = {domain.name for domain in self._state.tables["domains"]}
        first = self._state.tables["domains"].next_id()
        fresh = [pair for pair in source.domains if pair[0].lower() not in known]
        for domain_id, (name, subdomains) in enumerate(fresh, first):
            yield changes.DomainAdded(
                domain=Domain(id=domain_id, name=name.lower(), allow_subdomains=subdomains)
            )

    def _personal(self) -> Iterator[AnyChange]:
        source, ids = self._source, self._ids
        for user in source.users:
            user_id = ids.find("user", user.key)
            if user_id is None or ids.find("matched", user.key) is not None:
                continue
            values = self._profile(user, user_id)
            if values:
                yield changes.ProfileChanged(user_id=user_id, values=values)
            if user.alert_words:
                yield changes.AlertWordsChanged(user_id=user_id, words=user.alert_words)
            for muted_id in ids.several("user", user.muted):
                yield changes.UserMuted(
                    muted=MutedUser(user_id=user_id, muted_id=muted_id, since=self._now)
                )
            if user.status is not None:
                yield changes.StatusChanged(
                    user_id=user_id, text=user.status.text[:60], emoji=self._emoji(user)
                )
            for step in user.onboarding_steps:
                yield changes.OnboardingStepTaken(user_id=user_id, name=step)
        for draft in source.drafts:
            draft_id, user_id = ids.find("draft", draft.key), ids.find("user", draft.user)
            if (
                draft_id is not None
                and draft_id not in self._state.tables["drafts"]
                and user_id is not None
            ):
                kind = "channel" if draft.kind.value == "channel" else "user"
                yield changes.DraftsCreated(
                    user_id=user_id,
                    drafts=(
                        SavedDraft(
                            id=draft_id,
                            user_id=user_id,
                            kind=draft.kind,
                            to=ids.several(kind, draft.to),
                            topic=self.topic(draft.topic),
                            content=draft.content,
                            edited_at=draft.edited_at,
                        ),
                    ),
                )
                self._report.count("drafts")
        for snippet in source.snippets:
            snippet_id, user_id = ids.find("snippet", snippet.key), ids.find("user", snippet.user)
            if (
                snippet_id is not None
                and snippet_id not in self._state.tables["snippets"]
                and user_id is not None
            ):
                yield changes.SnippetCreated(
                    user_id=user_id,
                    snippet=Snippet(
                        id=snippet_id,
                        user_id=user_id,
                        title=snippet.title,
                        content=snippet.content,
                        created_at=snippet.created_at,
                    ),
                )
                self._report.count("saved snippets")
        for message in source.scheduled:
            user_id = ids.find("user", message.user)
            scheduled_id = ids.find("scheduled", message.key)
            if scheduled_id is None or scheduled_id in self._state.tables["scheduled_messages"]:
                continue
            if user_id is not None:
                yield changes.MessageScheduled(
                    user_id=user_id,
                    message=ScheduledMessage(
                        id=scheduled_id,
                        user_id=user_id,
                        channel_id=ids.find("channel", message.channel),
                        topic=self.topic(message.topic),
                        user_ids=ids.several("user", message.people),
                        content=message.content,
                        rendered=self.html(message.content),
                        deliver_at=message.deliver_at,
                        # What was due during the move is for its author to decide on.
                        failed=message.failed or message.deliver_at <= self._now,
                    ),
                )
                self._report.count("scheduled messages")
        for view in source.views:
            view_id, user_id = ids.find("view", view.key), ids.find("user", view.user)
            if (
                view_id is not None
                and view_id not in self._state.tables["navigation_views"]
                and user_id is not None
            ):
                yield changes.NavigationViewAdded(
                    user_id=user_id,
                    view=NavigationView(
                        id=view_id,
                        user_id=user_id,
                        fragment=view.fragment,
                        is_pinned=view.is_pinned,
                        name=view.name,
                    ),
                )
        for one in source.user_topics:
            user_id, channel_id = ids.find("user", one.user), ids.find("channel", one.channel)
            if user_id is not None and channel_id is not None:
                yield changes.UserTopicChanged(
                    user_id=user_id,
                    channel_id=channel_id,
                    topic=self.topic(one.topic),
                    visibility=one.visibility,
                    was=Visibility.INHERIT,
                    at=one.changed_at or self._now,
                )
                self._report.count("topic settings")

    def _profile(self, user: SourceUser, user_id: int) -> tuple[ProfileValue, ...]:
        found = []
        kinds = {field.key: field.kind for field in self._source.profile_fields}
        for key, value in user.profile.items():
            field_id = self._ids.find("field", key)
            if field_id is None:
                continue
            if kinds.get(key) is FieldKind.PEOPLE:
                people = self._ids.several("user", msgspec.json.decode(value, type=list[Any]))
                value = msgspec.json.encode(people).decode()
            rendered = ""
            if kinds.get(key) in {FieldKind.SHORT_TEXT, FieldKind.LONG_TEXT}:
                rendered = self.html(value)
            found.append(
                ProfileValue(user_id=user_id, field_id=field_id, value=value, rendered=rendered)
            )
        return tuple(found)

    def _emoji(self, user: SourceUser) -> Emoji | None:
        if user.status is None or not user.status.emoji:
            return None
        try:
            return emoji.chosen(self._state, user.status.emoji)
        except Refused:
            self._report.skip("emoji of statuses", "The emoji doesn't exist.", user.status.emoji)
            return None

    def _realm_settings(self) -> Iterator[AnyChange]:
        source = self._source
        given = {
            name: self._ids.find("channel", value) or -1
            if name.endswith("_channel_id") and value not in {-1, None}
            else value
            for name, value in source.settings.items()
        }
        values = self._values(given, Realm, "settings of the organization")
        if source.description:
            values["description"] = source.description[: names.MAX_REALM_DESCRIPTION]
            values["rendered_description"] = self.html(values["description"])
        for name, file in self.pictures.realm.items():
            values[name] = RealmPicture(file=file, version=2)
        if values:
            yield changes.RealmChanged(values=values)
        defaults = self._values(source.user_defaults, PersonalSettings, "default settings")
        if defaults:
            yield changes.RealmDefaultsChanged(values=defaults)

    def subscription(self, one: SourceSubscription, after: int) -> Iterator[AnyChange]:
        """Yield the changes that begin a subscription after that message."""
        state = self._state
        channel_id = self._ids.find("channel", one.channel)
        user_id = self._ids.find("user", one.user)
        if channel_id is None or user_id is None or state.is_subscribed(user_id, channel_id):
            return
        color = one.color or subscription_changes.color_for(state, user_id)
        yield changes.Subscribed(
            channel_id=channel_id, colors={user_id: color}, after=after, gained=(user_id,)
        )
        flags = {"is_muted": one.is_muted or None, "pin_to_top": one.pin_to_top or None}
        for name, value in (*one.settings.items(), *flags.items()):
            if value is not None:
                yield changes.SubscriptionChanged(
                    channel_id=channel_id, user_id=user_id, property=name, value=value
                )

    def _values(
        self, given: Mapping[str, Any], record: type[Struct], kind: str, sample: str = ""
    ) -> dict[str, Any]:
        """Return the values that are valid for the record's fields. The others are reported."""
        types = {field.name: field.type for field in fields(record)}
        found: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, Holders):
                value = self._ids.holders(value)
            if name not in types:
                self._report.skip(kind, f"There is no setting '{name}' here.", sample)
                continue
            try:
                found[name] = msgspec.convert(value, types[name], from_attributes=True)
            except msgspec.ValidationError:
                self._report.skip(kind, f"'{name}' can't have this value here.", repr(value))
        return found

    def _permissions(self, given: Mapping[str, Holders], record: type[Struct]) -> dict[str, Any]:
        known = set(record.__struct_fields__)
        for name in given.keys() - known:
            self._report.skip("permissions", f"There is no permission '{name}' here.")
        return {n: self._ids.holders(value) for n, value in given.items() if n in known}

    def topic(self, text: str) -> str:
        """Return a topic's name in its final form, without characters that aren't allowed."""
        try:
            return names.topic_name(text)
        except Refused:
            self._report.change("topics", "The name isn't allowed here as it was.", text)
            return names.topic_name(_printable(text))

    def html(self, text: str) -> str:
        """Return a text of the organization as HTML."""
        context = CommandContext(self._state, self._now, None)
        return self._renderer.render(context, text).html if text else ""

    def _text(self, kind: str, text: str, checked: Callable[[str], str], longest: int) -> str:
        """Return the text in its final form, shortened and without invisible characters if need
        be, or empty if nothing of it is allowed here."""
        for attempt in (text, text[:longest], _printable(text)[:longest].strip()):
            try:
                final = checked(attempt)
            except Refused:
                continue
            if final != text.strip():
                self._report.change(kind, "The name isn't allowed here as it was.", text)
            return final
        self._report.change(kind, "The name isn't allowed here.", text)
        return ""

    def _unique(
        self,
        kind: str,
        text: str,
        checked: Callable[[str], str],
        longest: int,
        is_taken: Callable[[str], bool],
    ) -> str:
        """Return the name in its final form, with a number if it is taken."""
        base = self._text(kind, text, checked, longest) or "imported"
        name, number = base, 1
        while is_taken(name):
            number += 1
            end = f" ({number})"
            name = base[: longest - len(end)] + end
        if name != base:
            self._report.change(kind, "The name is taken here, so it got a number.", text)
        return name


def _printable(text: str) -> str:
    return "".join(one for one in text if one.isprintable() and names.is_visible(one))


def _revised(record: Any, values: Mapping[str, Any]) -> Any:
    return replace(record, **values)


def pictures_of(source: SourceOrganization) -> Iterator[tuple[str, SourceFile]]:
    """Yield the organization's own pictures by the field of `Realm`."""
    for name in ("icon", "logo", "night_logo"):
        file = getattr(source, name)
        if file is not None:
            yield name, file
