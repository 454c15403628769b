"""The changes that create everything but messages, in an order in which each can be folded."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import names
from tertulia.domain.accounts import profiles
from tertulia.domain.accounts.profiles import FieldDetails, ProfileFieldUpdate
from tertulia.domain.organization import domains, emoji, linkifiers, realms, settings
from tertulia.domain.organization.linkifiers import LinkifierValues
from tertulia.imports.accounts import AccountChanges, Secrets
from tertulia.imports.channels import ChannelChanges
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.records import (
    SourceDraft,
    SourceEmoji,
    SourceFile,
    SourceLinkifier,
    SourceOrganization,
    SourceProfileField,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.values import ValueChecks, storable
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.drafts import DraftKind, SavedDraft, Snippet
from tertulia.model.emoji import codes_by_name
from tertulia.model.errors import Refused
from tertulia.model.groups import SYSTEM_GROUPS
from tertulia.model.invitations import Invitation
from tertulia.model.organization import Domain, Linkifier, Playground, Realm, RealmPicture
from tertulia.model.personal import NavigationView
from tertulia.model.profiles import ProfileField
from tertulia.model.reactions import CustomEmoji
from tertulia.model.scheduled import ScheduledMessage
from tertulia.model.user_topics import Visibility
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_CLIENT: Final = 100
"""Characters of a program's name, and of an emoji's."""


class Pictures(Struct, kw_only=True):
    """Pictures that were stored before the changes: the names of their files."""

    emoji: dict[int, tuple[str, str]] = {}
    """File and still image, by the emoji's ID."""
    realm: dict[str, str] = {}
    """By the field of `Realm`."""


class OrganizationChanges:
    """Makes the changes. `is_new`: whether the import creates the organization; otherwise its own
    settings stay."""

    def __init__(
        self,
        state: State,
        source: SourceOrganization,
        ids: Identifiers,
        secrets: Secrets,
        report: ImportReport,
        now: float,
        *,
        is_new: bool,
    ) -> None:
        self._state = state
        self._source = source
        self._ids = ids
        self._report = report
        self._now = int(now)
        self._is_new = is_new
        self._secrets = secrets
        self._checks = ValueChecks(state, ids, report, self._now)
        self.pictures = Pictures()
        self.accounts = AccountChanges(
            state, source, ids, self._checks, secrets, report, self._now, is_new=is_new
        )
        self.channels = ChannelChanges(state, source, ids, self._checks, report, is_new=is_new)

    def founding(self, uuid: str) -> list[AnyChange]:
        """Return the changes that create the organization."""
        realm = Realm(
            uuid=uuid,
            name=self._checks.name(
                "organization",
                self._source.name,
                names.realm_name,
                names.MAX_REALM_NAME,
                otherwise="Organization",
            ),
            created_at=self._checks.seconds(self._source.created_at),
            inline_url_embed_preview=True,
            upload_quota_per_user_mib=realms.UPLOAD_QUOTA_MIB,
        )
        bots = realms.system_bots(self._now)
        return [changes.RealmCreated(realm=realm, groups=SYSTEM_GROUPS, bots=bots)]

    def rest(self) -> Iterator[AnyChange]:
        """Yield the changes that create everything but accounts, channels, and subscriptions.

        Each is decided by the state when it is asked for, so they are committed in pieces.
        """
        yield from self._emoji()
        yield from self._fields()
        yield from self._linkifiers()
        yield from self._playgrounds()
        yield from self._domains()
        if self._is_new:
            yield from self._realm_settings()

    def personal(self) -> Iterator[AnyChange]:
        """Yield the changes that write what belongs to people, after `rest` is committed."""
        yield from self.accounts.personal()
        yield from self._drafts()
        yield from self._snippets()
        yield from self._scheduled()
        yield from self._views()
        yield from self._user_topics()
        yield from self._invitations()

    @property
    def _context(self) -> CommandContext:
        """What a verb sees that an owner carries out."""
        owner_id = self.accounts.first_owner or realms.NOTIFICATION_BOT
        return CommandContext(self._state, self._now, owner_id)

    def _allowed(
        self, kind: str, sample: str, verb: Callable[..., Decision[Any]], *arguments: Any
    ) -> AnyChange | None:
        """Return the change that the verb makes, or None if it refuses, which is reported."""
        try:
            changes = verb(self._context, *arguments).changes
        except Refused as refusal:
            self._report.skip(kind, str(refusal), sample)
            return None
        return changes[0] if changes else None

    # Lists of the organization

    def _emoji(self) -> Iterator[AnyChange]:
        taken = {one.name for one in self._state.custom_emoji if not one.deactivated}
        for one in self._source.emoji:
            emoji_id = self._ids.find("emoji", one.key)
            if emoji_id is None or emoji_id in self._state.custom_emoji:
                continue
            stored = self.pictures.emoji.get(emoji_id)
            if stored is None:
                continue  # The report says why its picture could not be read.
            name = storable(one.name).strip().lower()[: emoji.MAX_NAME]
            is_active = not one.deactivated and self._may_be_named(one, name, taken)
            taken |= {name} if is_active else set()
            file, still = stored
            self._report.count("custom emoji")
            yield changes.CustomEmojiAdded(
                emoji=CustomEmoji(
                    id=emoji_id,
                    name=name,
                    file=file,
                    still=still,
                    author_id=self._ids.find("user", one.author),
                    deactivated=not is_active,
                )
            )

    def _may_be_named(self, one: SourceEmoji, name: str, taken: set[str]) -> bool:
        """Whether the emoji can be active under that name. One that replaces a Unicode emoji can
        in a new organization."""
        reason = ""
        if name in taken:
            reason = "Another custom emoji has this name, so it is deactivated."
        elif not self._is_new and name in codes_by_name():
            reason = "It would replace a Unicode emoji, so it is deactivated."
        else:
            try:
                emoji.check_name(name)
            except Refused:
                reason = "The name isn't allowed here, so it is deactivated."
        if reason:
            self._report.change("custom emoji", reason, one.name)
        return not reason

    def _fields(self) -> Iterator[AnyChange]:
        for source in sorted(self._source.profile_fields, key=lambda one: one.order):
            field_id = self._ids.find("field", source.key)
            if field_id is None or field_id in self._state.profile_fields:
                continue
            made = self._allowed(
                "profile fields", source.name, profiles.create_field, source.kind, _details(source)
            )
            if isinstance(made, changes.ProfileFieldCreated):
                self._report.count("profile fields")
                yield changes.ProfileFieldCreated(field=self._field(made.field, source, field_id))

    def _field(self, made: ProfileField, source: SourceProfileField, field_id: int) -> ProfileField:
        known = {
            name: bool(source.data.get(name, getattr(made, name)))
            for name in ("required", "editable_by_user", "used_for_matching")
        }
        order = source.order if self._is_new else made.order
        return replace(made, id=field_id, order=order, **known)

    def _linkifiers(self) -> Iterator[AnyChange]:
        for source in sorted(self._source.linkifiers, key=lambda one: one.order):
            number = self._ids.find("linkifier", source.key)
            if number is None or number in self._state.linkifiers:
                continue
            values = _linkifier(source)
            made = self._allowed("linkifiers", source.pattern, linkifiers.add, values)
            if isinstance(made, changes.LinkifierSet):
                linkifier: Linkifier = replace(made.linkifier, id=number)
                self._report.count("linkifiers")
                yield changes.LinkifierSet(linkifier=linkifier)

    def _playgrounds(self) -> Iterator[AnyChange]:
        for source in self._source.playgrounds:
            number = self._ids.find("playground", source.key)
            if number is None or number in self._state.playgrounds:
                continue
            made = self._allowed(
                "playgrounds",
                source.name,
                linkifiers.add_playground,
                *(source.name, source.language, source.url_template),
            )
            if isinstance(made, changes.PlaygroundAdded):
                playground: Playground = replace(made.playground, id=number)
                self._report.count("playgrounds")
                yield changes.PlaygroundAdded(playground=playground)

    def _domains(self) -> Iterator[AnyChange]:
        for name, subdomains in self._source.domains:
            if not self._is_new:  # They say who may join.
                self._report.skip("email domains", "This organization keeps its own.", name)
                continue
            if domains.named(self._state, name) is not None:
                continue
            made = self._allowed("email domains", name, domains.add, name, subdomains)
            if isinstance(made, changes.DomainAdded):
                domain: Domain = made.domain
                self._report.count("email domains")
                yield changes.DomainAdded(domain=domain)

    def _realm_settings(self) -> Iterator[AnyChange]:
        source = self._source
        values = self._checks.realm_settings(source.settings)
        description = self._checks.text(
            "organization", source.description, names.MAX_REALM_DESCRIPTION
        )
        if description:
            values["description"] = description
            values["rendered_description"] = self._checks.html(description)
        for name, file in self.pictures.realm.items():
            values[name] = RealmPicture(file=file, version=2)
        yield from settings.changed(self._context, values)
        defaults = self._checks.personal_settings("default settings", source.user_defaults)
        before = self._state.default_settings
        fresh = {name: one for name, one in defaults.items() if getattr(before, name) != one}
        if fresh:
            yield changes.RealmDefaultsChanged(values=fresh)

    # What belongs to people

    def _drafts(self) -> Iterator[AnyChange]:
        for draft in self._source.drafts:
            draft_id = self._ids.find("draft", draft.key)
            user_id = self._ids.find("user", draft.user)
            if draft_id is None or draft_id in self._state.drafts:
                continue
            made = self._draft(draft, draft_id, user_id) if user_id is not None else None
            if made is None:
                self._report.skip("drafts", "Its author or text isn't in the export.", draft.key)
                continue
            self._report.count("drafts")
            yield changes.DraftsCreated(user_id=made.user_id, drafts=(made,))

    def _draft(self, draft: SourceDraft, draft_id: int, user_id: int) -> SavedDraft | None:
        ids = self._ids
        kind, to = draft.kind, ids.several("user", draft.to)
        if kind is DraftKind.CHANNEL:
            to = ids.several("channel", draft.to)[:1]
        if not to:
            kind = DraftKind.NOTHING
        try:
            return SavedDraft(
                id=draft_id,
                user_id=user_id,
                kind=kind,
                to=() if kind is DraftKind.NOTHING else to,
                topic=topic_name(draft.topic) if kind is DraftKind.CHANNEL else "",
                content=names.message_content(storable(draft.content)),
                edited_at=self._checks.seconds(draft.edited_at),
            )
        except Refused:
            return None

    def _snippets(self) -> Iterator[AnyChange]:
        for source in self._source.snippets:
            snippet_id = self._ids.find("snippet", source.key)
            user_id = self._ids.find("user", source.user)
            if snippet_id is None or user_id is None or snippet_id in self._state.snippets:
                continue
            title = storable(source.title).strip()[: names.MAX_SNIPPET_TITLE].rstrip()
            content = storable(source.content).strip()[: names.MAX_MESSAGE].rstrip()
            if not title or not content:
                self._report.skip("saved snippets", "Its title or text is empty.", source.key)
                continue
            self._report.count("saved snippets")
            yield changes.SnippetCreated(
                user_id=user_id,
                snippet=Snippet(
                    id=snippet_id,
                    user_id=user_id,
                    title=title,
                    content=content,
                    created_at=self._checks.seconds(source.created_at),
                ),
            )

    def _scheduled(self) -> Iterator[AnyChange]:
        ids = self._ids
        for source in self._source.scheduled:
            user_id = ids.find("user", source.user)
            scheduled_id = ids.find("scheduled", source.key)
            if scheduled_id is None or scheduled_id in self._state.tables["scheduled_messages"]:
                continue
            channel_id = ids.find("channel", source.channel)
            people = ids.several("user", source.people)
            try:
                content = names.message_content(storable(source.content))
            except Refused:
                content = ""
            if user_id is None or not content or (channel_id is None and not people):
                self._report.skip(
                    "scheduled messages",
                    "Its author, place, or text isn't in the export.",
                    source.key,
                )
                continue
            # What was due during the move is for its author to decide on.
            missed = source.deliver_at <= self._now
            if missed:
                self._report.change(
                    "scheduled messages",
                    "It was due during the move, so it was not sent: its author decides.",
                    source.key,
                )
            self._report.count("scheduled messages")
            yield changes.MessageScheduled(
                user_id=user_id,
                message=ScheduledMessage(
                    id=scheduled_id,
                    user_id=user_id,
                    channel_id=channel_id,
                    topic="" if channel_id is None else topic_name(source.topic),
                    user_ids=people if channel_id is None else (),
                    content=content,
                    rendered=self._checks.html(content, user_id),
                    deliver_at=self._checks.due(source.deliver_at),
                    client=storable(source.client)[:MAX_CLIENT],
                    read_by_sender=source.read_by_sender,
                    failed=source.failed or missed,
                ),
            )

    def _views(self) -> Iterator[AnyChange]:
        for source in self._source.views:
            view_id = self._ids.find("view", source.key)
            user_id = self._ids.find("user", source.user)
            if view_id is None or user_id is None or view_id in self._state.navigation_views:
                continue
            try:
                view = NavigationView(
                    id=view_id,
                    user_id=user_id,
                    fragment=names.view_fragment(storable(source.fragment)),
                    is_pinned=source.is_pinned,
                    name=None if source.name is None else names.view_name(storable(source.name)),
                )
            except Refused as refusal:
                self._report.skip("views", str(refusal), source.fragment)
                continue
            yield changes.NavigationViewAdded(user_id=user_id, view=view)

    def _user_topics(self) -> Iterator[AnyChange]:
        known = self._state.tables["user_topics"]
        for one in self._source.user_topics:
            user_id = self._ids.find("user", one.user)
            channel_id = self._ids.find("channel", one.channel)
            if user_id is None or channel_id is None:
                continue
            topic = topic_name(one.topic)
            if (user_id, channel_id, topic.casefold()) in known:
                continue
            self._report.count("topic settings")
            yield changes.UserTopicChanged(
                user_id=user_id,
                channel_id=channel_id,
                topic=topic,
                visibility=one.visibility,
                was=Visibility.INHERIT,
                at=self._checks.seconds(one.changed_at),
            )

    def _invitations(self) -> Iterator[AnyChange]:
        known = {(one.address or "").casefold() for one in self._state.invitations}
        next_id = self._state.invitations.next_id()
        for source in self._source.invitations:
            reason = ""
            inviter = self._state.users.get(self._ids.find("user", source.inviter))
            try:
                address = names.address(source.address)
            except Refused:
                address, reason = "", "The address isn't valid."
            if inviter is None or not inviter.is_active:
                reason = "Who invited isn't an active member here."
            elif source.expires_at is not None and source.expires_at <= self._now:
                reason = "It expired."
            elif source.role < inviter.role:
                reason = "It is to a role with more permissions than the inviter's."
            elif self._state.user_with_address(address) is not None:
                reason = "The address has an account."
            if reason or inviter is None:
                self._report.skip("invitations", reason, source.address)
                continue
            if address.casefold() in known:
                continue
            known.add(address.casefold())
            self._report.count("invitations")
            yield changes.InvitationsMade(
                invitations=(
                    Invitation(
                        id=next_id,
                        inviter_id=inviter.id,
                        address=address,
                        created_at=self._now,
                        expires_at=source.expires_at,
                        role=source.role,
                        channel_ids=self._ids.several("channel", source.channels),
                        default_channels=not source.channels,
                        nonce=self._secrets.nonce(),
                    ),
                )
            )
            next_id += 1


def topic_name(text: str) -> str:
    """Return a topic's name in its final form, without characters that aren't allowed."""
    plain = storable(text)
    try:
        return names.topic_name(plain)
    except Refused:
        return names.topic_name("".join(c if names.is_printable(c) else " " for c in plain))


def _linkifier(source: SourceLinkifier) -> LinkifierValues:
    given = {"pattern": source.pattern, "url_template": source.url_template}
    try:
        return msgspec.convert({**source.data, **given}, LinkifierValues)
    except msgspec.ValidationError:
        return LinkifierValues(pattern=source.pattern, url_template=source.url_template)


def _details(source: SourceProfileField) -> ProfileFieldUpdate:
    given = {n: v for n, v in source.data.items() if n in FieldDetails.__struct_fields__}
    try:
        details = msgspec.convert(given, FieldDetails)
    except msgspec.ValidationError:
        details = FieldDetails()
    return ProfileFieldUpdate(
        name=source.name[: profiles.MAX_NAME],
        hint=source.hint[: profiles.MAX_HINT],
        details=details,
        in_summary=bool(source.data.get("in_summary")) or None,
    )


def pictures_of(source: SourceOrganization) -> Iterator[tuple[str, SourceFile]]:
    """Yield the organization's own pictures by the field of `Realm`."""
    for name in ("icon", "logo", "night_logo"):
        file = getattr(source, name)
        if file is not None:
            yield name, file
