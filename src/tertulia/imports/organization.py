"""The changes that create everything except messages, in an order that can be folded."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import names
from tertulia.domain.accounts import profiles
from tertulia.domain.accounts.profiles import FieldDetails, ProfileFieldUpdate
from tertulia.domain.organization import domains, emoji, lifecycle, linkifiers, settings
from tertulia.domain.organization.linkifiers import LinkifierValues
from tertulia.imports.accounts import AccountChanges
from tertulia.imports.channels import ChannelChanges
from tertulia.imports.context import ImportContext
from tertulia.imports.personal_records import PersonalRecords
from tertulia.imports.records import (
    SourceEmoji,
    SourceFile,
    SourceLinkifier,
    SourceOrganization,
    SourceProfileField,
)
from tertulia.imports.values import storable
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.emoji import codes_by_name
from tertulia.model.errors import Refused
from tertulia.model.groups import SYSTEM_GROUPS
from tertulia.model.organization import Domain, Linkifier, Playground, Realm, RealmPicture
from tertulia.model.profiles import ProfileField
from tertulia.model.reactions import CustomEmoji
from tertulia.state.decision import CommandContext, Decision


class Pictures(Struct, kw_only=True):
    """The file names of pictures that were stored before the changes."""

    emoji: dict[int, tuple[str, str]] = {}
    """The file and its still image, by the emoji's ID."""
    realm: dict[str, str] = {}
    """The file names, by field of `Realm`."""


class OrganizationChanges:
    """Makes the changes that create the organization and everything except messages."""

    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._records = PersonalRecords(context)
        self.pictures = Pictures()
        self.accounts = AccountChanges(context)
        self.channels = ChannelChanges(context)

    def founding(self, uuid: str) -> list[AnyChange]:
        """Return the changes that create the organization."""
        realm = Realm(
            uuid=uuid,
            name=self._context.checks.name(
                "organization",
                self._context.source.name,
                names.realm_name,
                names.MAX_REALM_NAME,
                otherwise="Organization",
            ),
            created_at=self._context.checks.seconds(self._context.source.created_at),
            inline_url_embed_preview=True,
            upload_quota_per_user_mib=lifecycle.UPLOAD_QUOTA_MIB,
        )
        bots = lifecycle.system_bots(self._context.now)
        return [changes.RealmCreated(realm=realm, groups=SYSTEM_GROUPS, bots=bots)]

    def rest(self) -> Iterator[AnyChange]:
        """Yield the changes that create everything except accounts, channels, and subscriptions.

        Each is decided on the current state when it's yielded, so the caller must commit in
        between.
        """
        yield from self._emoji()
        yield from self._fields()
        yield from self._linkifiers()
        yield from self._playgrounds()
        yield from self._domains()
        if self._context.is_new:
            yield from self._realm_settings()

    def personal(self) -> Iterator[AnyChange]:
        """Yield the changes that write people's personal records, after `rest` is committed."""
        yield from self.accounts.personal()
        yield from self._records.changes()

    @property
    def _as_owner(self) -> CommandContext:
        """Return the context for a verb that an owner submits."""
        owner_id = self.accounts.first_owner or lifecycle.NOTIFICATION_BOT
        return CommandContext(self._context.state, self._context.now, owner_id)

    def _allowed(
        self, kind: str, sample: str, verb: Callable[..., Decision[Any]], *arguments: Any
    ) -> AnyChange | None:
        """Return the verb's change, or None if the verb refuses, which is added to the report."""
        try:
            changes = verb(self._as_owner, *arguments).changes
        except Refused as refusal:
            self._context.report.skip(kind, str(refusal), sample)
            return None
        return changes[0] if changes else None

    # Lists of the organization

    def _emoji(self) -> Iterator[AnyChange]:
        taken = {emoji.name for emoji in self._context.state.custom_emoji if not emoji.deactivated}
        for item in self._context.report.each(self._context.source.emoji):
            emoji_id = self._context.ids.find("emoji", item.key)
            if emoji_id is None or emoji_id in self._context.state.custom_emoji:
                continue
            stored = self.pictures.emoji.get(emoji_id)
            if stored is None:
                continue  # The report already says why the picture couldn't be read.
            name = storable(item.name).strip().lower()[: emoji.MAX_NAME]
            is_active = not item.deactivated and self._may_be_named(item, name, taken)
            taken |= {name} if is_active else set()
            file, still = stored
            self._context.report.count("custom emoji")
            yield changes.CustomEmojiAdded(
                emoji=CustomEmoji(
                    id=emoji_id,
                    name=name,
                    file=file,
                    still=still,
                    author_id=self._context.ids.find("user", item.author),
                    deactivated=not is_active,
                )
            )

    def _may_be_named(self, item: SourceEmoji, name: str, taken: set[str]) -> bool:
        """Whether the emoji can be active under this name. In a new organization, it may replace a
        Unicode emoji."""
        reason = ""
        if name in taken:
            reason = "Another custom emoji has this name, so it is deactivated."
        elif not self._context.is_new and name in codes_by_name():
            reason = "It would replace a Unicode emoji, so it is deactivated."
        else:
            try:
                emoji.check_name(name)
            except Refused:
                reason = "The name isn't allowed here, so it is deactivated."
        if reason:
            self._context.report.change("custom emoji", reason, item.name)
        return not reason

    def _fields(self) -> Iterator[AnyChange]:
        for source in self._context.report.each(
            sorted(self._context.source.profile_fields, key=lambda field: field.order)
        ):
            field_id = self._context.ids.find("field", source.key)
            if field_id is None or field_id in self._context.state.profile_fields:
                continue
            made = self._allowed(
                "profile fields", source.name, profiles.create_field, source.kind, _details(source)
            )
            if isinstance(made, changes.ProfileFieldCreated):
                self._context.report.count("profile fields")
                yield changes.ProfileFieldCreated(field=self._field(made.field, source, field_id))

    def _field(self, made: ProfileField, source: SourceProfileField, field_id: int) -> ProfileField:
        known = {
            name: bool(source.data.get(name, getattr(made, name)))
            for name in ("required", "editable_by_user", "used_for_matching")
        }
        order = source.order if self._context.is_new else made.order
        return replace(made, id=field_id, order=order, **known)

    def _linkifiers(self) -> Iterator[AnyChange]:
        for source in self._context.report.each(
            sorted(self._context.source.linkifiers, key=lambda linkifier: linkifier.order)
        ):
            number = self._context.ids.find("linkifier", source.key)
            if number is None or number in self._context.state.linkifiers:
                continue
            values = _linkifier(source)
            made = self._allowed("linkifiers", source.pattern, linkifiers.add, values)
            if isinstance(made, changes.LinkifierSet):
                linkifier: Linkifier = replace(made.linkifier, id=number)
                self._context.report.count("linkifiers")
                yield changes.LinkifierSet(linkifier=linkifier)

    def _playgrounds(self) -> Iterator[AnyChange]:
        for source in self._context.report.each(self._context.source.playgrounds):
            number = self._context.ids.find("playground", source.key)
            if number is None or number in self._context.state.playgrounds:
                continue
            made = self._allowed(
                "playgrounds",
                source.name,
                linkifiers.add_playground,
                *(source.name, source.language, source.url_template),
            )
            if isinstance(made, changes.PlaygroundAdded):
                playground: Playground = replace(made.playground, id=number)
                self._context.report.count("playgrounds")
                yield changes.PlaygroundAdded(playground=playground)

    def _domains(self) -> Iterator[AnyChange]:
        for name, subdomains in self._context.report.each(self._context.source.domains):
            if not self._context.is_new:  # They decide who may join.
                self._context.report.skip("email domains", "This organization keeps its own.", name)
                continue
            if domains.domain_named(self._context.state, name) is not None:
                continue
            made = self._allowed("email domains", name, domains.add, name, subdomains)
            if isinstance(made, changes.DomainAdded):
                domain: Domain = made.domain
                self._context.report.count("email domains")
                yield changes.DomainAdded(domain=domain)

    def _realm_settings(self) -> Iterator[AnyChange]:
        source = self._context.source
        self._context.report.begin_record()
        values = self._context.checks.realm_settings(source.settings)
        description = self._context.checks.text(
            "organization", source.description, names.MAX_REALM_DESCRIPTION
        )
        if description:
            values["description"] = description
            values["rendered_description"] = self._context.checks.html(description)
        for name, file in self.pictures.realm.items():
            values[name] = RealmPicture(file=file, version=2)
        yield from settings.setting_changes(self._as_owner, values)
        self._context.report.begin_record()
        defaults = self._context.checks.personal_settings("default settings", source.user_defaults)
        before = self._context.state.default_settings
        fresh = {
            name: default for name, default in defaults.items() if getattr(before, name) != default
        }
        if fresh:
            yield changes.RealmDefaultsChanged(values=fresh)


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
