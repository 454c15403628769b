"""Reading the organization of a Zulip export as neutral records."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tertulia.imports.records import (
    SourceAttachment,
    SourceChannel,
    SourceDraft,
    SourceEmoji,
    SourceFile,
    SourceFolder,
    SourceLinkifier,
    SourceOrganization,
    SourcePlayground,
    SourceProfileField,
    SourceReminder,
    SourceScheduled,
    SourceSnippet,
    SourceUserTopic,
    SourceView,
)
from tertulia.imports.stages import TellStage, tell_nobody
from tertulia.imports.zulip.groups import ZulipGroups
from tertulia.imports.zulip.links import LocalLinks
from tertulia.imports.zulip.people import ZulipPeople
from tertulia.imports.zulip.realm import REMINDER, ExportedRealm
from tertulia.imports.zulip.rows import (
    Row,
    clean,
    days,
    flag,
    number,
    seconds,
    text,
    valid,
)
from tertulia.imports.zulip.settings import (
    channel_permissions,
    realm_settings,
    user_settings,
)
from tertulia.imports.zulip.subscriptions import Conversations, subscriptions
from tertulia.imports.zulip.tables import records
from tertulia.model.channels import TopicsPolicy
from tertulia.model.drafts import DraftKind
from tertulia.model.profiles import Choice, FieldKind
from tertulia.model.user_topics import Visibility

_ARCHIVED_NAME: Final = re.compile(r"(?:[0-9a-f]{7})?!+DEACTIVATED:")
_TOPICS: Final = {
    1: TopicsPolicy.INHERIT,
    2: TopicsPolicy.ALLOW_EMPTY,
    3: TopicsPolicy.DISABLE_EMPTY,
    4: TopicsPolicy.EMPTY_ONLY,
}


class ZulipOrganization:
    """Makes the records from the export's tables."""

    def __init__(
        self,
        realm: ExportedRealm,
        directory: Path,
        conversations: Conversations,
        tell: TellStage = tell_nobody,
    ) -> None:
        self._realm = realm
        self._tell = tell
        self._rows = realm.rows
        self._report = realm.report
        self._directory = directory
        self._conversations = conversations
        self._links = LocalLinks(realm.host)
        self._own = self._rows("zerver_realm")[0]
        self._groups = ZulipGroups(realm)
        self._clients = clients(realm)

    def read(self) -> SourceOrganization:
        """Return everything except messages."""
        settings = realm_settings(self._own, self._groups.holders)
        default: Row = next(iter(self._rows("zerver_realmuserdefault")), {})
        return SourceOrganization(
            name=text(self._own, "name"),
            description=text(self._own, "description"),
            created_at=seconds(self._own, "date_created"),
            settings=settings,
            user_defaults=user_settings(default),
            icon=self._realm_picture("icon"),
            logo=self._realm_picture("logo"),
            night_logo=self._realm_picture("night_logo"),
            domains=tuple(
                (text(row, "domain"), flag(row, "allow_subdomains"))
                for row in self._rows("zerver_realmdomain")
                if text(row, "domain")
            ),
            users=tuple(ZulipPeople(self._realm, self._directory).users()),
            system_bots=self._conversations.system_bots,
            groups=tuple(self._groups.named()),
            folders=tuple(self._folders()),
            channels=tuple(self._channels()),
            subscriptions=tuple(
                subscriptions(self._realm, self._conversations, self._directory, self._tell)
            ),
            emoji=tuple(self._emoji()),
            profile_fields=tuple(self._profile_fields()),
            linkifiers=tuple(self._linkifiers()),
            playgrounds=tuple(
                SourcePlayground(
                    key=row["id"],
                    name=text(row, "name"),
                    language=text(row, "pygments_language"),
                    url_template=text(row, "url_template") or text(row, "url_prefix") + "{code}",
                )
                for row in self._valid("zerver_realmplayground", "playgrounds")
            ),
            drafts=tuple(self._drafts()),
            snippets=tuple(
                SourceSnippet(
                    key=row["id"],
                    user=row["user_profile"],
                    title=text(row, "title"),
                    content=self._links.local(text(row, "content")),
                    created_at=seconds(row, "date_created"),
                )
                for row in self._valid("zerver_savedsnippet", "saved snippets", "user_profile")
            ),
            scheduled=tuple(self._scheduled()),
            user_topics=tuple(self._user_topics()),
            views=tuple(
                SourceView(
                    key=row["id"],
                    user=row["user"],
                    fragment=text(row, "fragment"),
                    is_pinned=flag(row, "is_pinned"),
                    name=text(row, "name") or None,
                )
                for row in self._valid("zerver_navigationview", "navigation views", "user")
                if text(row, "fragment")
            ),
            attachments=tuple(
                attachment(row) for row in self._realm.scratch.of_messages("attachments", [0])
            ),
        )

    def _valid(self, table: str, kind: str, *needed: str) -> Iterator[Row]:
        return valid(self._rows(table), kind, needed, self._report)

    # The organization's lists

    def _realm_picture(self, name: str) -> SourceFile | None:
        if text(self._own, f"{name}_source") != "U":
            return None
        result = None
        for row in records(self._directory / "realm_icons" / "records.json"):
            path = text(row, "path")
            file = path.rpartition("/")[2]
            if file == f"{name}.original" or (file == f"{name}.png" and result is None):
                result = SourceFile(place=f"realm_icons/{path}")
        return result

    def _emoji(self) -> Iterator[SourceEmoji]:
        paths: dict[str, str] = {}
        for record in records(self._directory / "emoji" / "records.json"):
            name, path = text(record, "file_name"), text(record, "path")
            if name and path and (name not in paths or path.endswith(".original")):
                paths[name] = path
        for row in self._valid("zerver_realmemoji", "custom emoji"):
            name = text(row, "file_name")
            yield SourceEmoji(
                key=row["id"],
                name=text(row, "name"),
                file=SourceFile(place=f"emoji/{paths.get(name, name)}"),
                author=number(row, "author"),
                deactivated=flag(row, "deactivated"),
            )

    def _profile_fields(self) -> Iterator[SourceProfileField]:
        for row in self._valid("zerver_customprofilefield", "profile fields", "field_type"):
            if row["field_type"] not in {kind.value for kind in FieldKind}:
                self._report.skip(
                    "profile fields", "The field's type is unknown.", text(row, "name")
                )
                continue
            kind = FieldKind(row["field_type"])
            yield SourceProfileField(
                key=row["id"],
                kind=kind,
                name=text(row, "name"),
                hint=text(row, "hint"),
                order=number(row, "order") or 0,
                data={
                    "in_summary": flag(row, "display_in_profile_summary"),
                    "required": flag(row, "required"),
                    "editable_by_user": flag(row, "editable_by_user", True),
                    "used_for_matching": flag(row, "use_for_user_matching"),
                    **_field_details(kind, _object(row.get("field_data"))),
                },
            )

    def _linkifiers(self) -> Iterator[SourceLinkifier]:
        for row in self._valid("zerver_realmfilter", "linkifiers"):
            template = text(row, "url_template")
            if not template:  # Before URL templates, it was a Python format string.
                template = re.sub(r"%\((\w+)\)s", r"{\1}", text(row, "url_format_string"))
            others = row.get("alternative_url_templates")
            yield SourceLinkifier(
                key=row["id"],
                pattern=text(row, "pattern"),
                url_template=template,
                order=number(row, "order") or 0,
                data={
                    "example_input": text(row, "example_input") or None,
                    "reverse_template": text(row, "reverse_template") or None,
                    "alternative_url_templates": tuple(
                        clean(other)
                        for other in (others if isinstance(others, list) else ())
                        if isinstance(other, str)
                    ),
                },
            )

    # Channels

    def _folders(self) -> Iterator[SourceFolder]:
        for row in self._valid("zerver_channelfolder", "folders"):
            yield SourceFolder(
                key=row["id"],
                name=text(row, "name"),
                description=self._links.local(text(row, "description")),
                order=number(row, "order") or 0,
                created_at=seconds(row, "date_created") or None,
                creator=number(row, "creator"),
                is_archived=flag(row, "is_archived"),
            )

    def _channels(self) -> Iterator[SourceChannel]:
        default = {number(row, "stream") for row in self._rows("zerver_defaultstream")}
        rows = list(self._valid("zerver_stream", "channels"))
        # If an archived channel and a present one have the same name, the present one keeps it.
        for row in sorted(rows, key=lambda row: (flag(row, "deactivated"), row["id"])):
            is_archived, name = flag(row, "deactivated"), text(row, "name")
            if is_archived:  # Until 2024, archived channels were renamed.
                name = _ARCHIVED_NAME.sub("", name, count=1)
            policy = row.get("topics_policy")
            yield SourceChannel(
                key=row["id"],
                name=name,
                description=self._links.local(text(row, "description")),
                created_at=seconds(row, "date_created"),
                creator=number(row, "creator"),
                is_private=flag(row, "invite_only"),
                is_web_public=flag(row, "is_web_public") and not flag(row, "invite_only"),
                is_archived=is_archived,
                is_default=row["id"] in default and not is_archived,
                history_public=flag(row, "history_public_to_subscribers", True),
                retention_days=days(row, "message_retention_days"),
                topics_policy=_TOPICS.get(policy, TopicsPolicy.INHERIT)
                if isinstance(policy, int)
                else TopicsPolicy.INHERIT,
                folder=number(row, "folder"),
                permissions=channel_permissions(row, self._groups.holders),
            )

    # People's records

    def _user_topics(self) -> Iterator[SourceUserTopic]:
        policies = {visibility.value for visibility in Visibility} - {0}
        for row in self._valid("zerver_usertopic", "topic settings", "user_profile", "stream"):
            policy = number(row, "visibility_policy")
            if policy in policies:
                yield SourceUserTopic(
                    user=row["user_profile"],
                    channel=row["stream"],
                    topic=text(row, "topic_name"),
                    visibility=Visibility(policy),
                    changed_at=seconds(row, "last_updated"),
                )

    def _drafts(self) -> Iterator[SourceDraft]:
        for row in self._valid("zerver_draft", "drafts", "user_profile"):
            recipient, user = number(row, "recipient"), row["user_profile"]
            channel = self._conversations.channel(recipient)
            people = self._conversations.people(recipient, user)
            kind = DraftKind.NOTHING
            if channel is not None:
                kind = DraftKind.CHANNEL
            elif people:
                kind = DraftKind.DIRECT
            yield SourceDraft(
                key=row["id"],
                user=user,
                kind=kind,
                to=(channel,) if channel is not None else _others(people, user),
                topic=text(row, "topic") if channel is not None else "",
                content=self._links.local(text(row, "content")),
                edited_at=seconds(row, "last_edit_time"),
            )

    def _scheduled(self) -> Iterator[SourceScheduled]:
        for row in self._valid(
            "zerver_scheduledmessage", "scheduled messages", "sender", "recipient"
        ):
            if flag(row, "delivered") or row.get("delivery_type") == REMINDER:
                continue
            user, recipient = row["sender"], row["recipient"]
            channel = self._conversations.channel(recipient)
            people = self._conversations.people(recipient, user)
            if channel is None and not people:
                self._report.skip(
                    "scheduled messages",
                    "The conversation isn't in the export.",
                    text(row, "content"),
                )
                continue
            yield SourceScheduled(
                key=row["id"],
                user=user,
                channel=channel,
                topic=text(row, "subject") if channel is not None else "",
                people=_others(people, user),
                content=self._links.local(text(row, "content")),
                deliver_at=seconds(row, "scheduled_timestamp"),
                client=self._clients.get(number(row, "sending_client"), ""),
                read_by_sender=flag(row, "read_by_sender"),
                failed=flag(row, "failed"),
            )


def clients(realm: ExportedRealm) -> dict[int | None, str]:
    """Return the names of the programs that messages were written in, by ID."""
    return {number(row, "id"): text(row, "name")[:100] for row in realm.rows("zerver_client")}


def reminders(realm: ExportedRealm) -> Iterator[tuple[int, SourceReminder]]:
    """Yield the reminders that weren't delivered yet, with the IDs of their messages."""
    for row in realm.rows("zerver_scheduledmessage"):
        user, message = number(row, "sender"), number(row, "reminder_target_message_id")
        if row.get("delivery_type") != REMINDER or flag(row, "delivered") or user is None:
            continue
        if message is None:
            realm.report.skip(
                "reminders",
                "The export doesn't say which message it's about.",
                text(row, "content"),
            )
            continue
        yield (
            message,
            SourceReminder(
                user=user,
                note=text(row, "reminder_note"),
                content=text(row, "content"),
                deliver_at=seconds(row, "scheduled_timestamp"),
            ),
        )


def attachment(row: tuple[Any, ...]) -> SourceAttachment:
    """Return the attachment described by a row of the scratch file."""
    _message, key, owner, path, name, media_type, size, created_at = row
    return SourceAttachment(
        key=key,
        owner=owner,
        path=path,
        file=SourceFile(place=f"uploads/{path}", name=name, media_type=media_type, size=size),
        created_at=created_at,
    )


def _others(people: tuple[int, ...], user: int) -> tuple[int, ...]:
    """Return the other participants of a conversation, or the user if they're alone."""
    return tuple(person_id for person_id in people if person_id != user) or people


def _object(value: Any) -> dict[str, Any]:
    """Return the object in a JSON text, or an empty one if it's invalid."""
    if not isinstance(value, str) or not value:
        return {}
    try:
        result = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}


def _field_details(kind: FieldKind, data: dict[str, Any]) -> dict[str, Any]:
    if kind is FieldKind.CHOICE:
        options = [(key, value) for key, value in data.items() if isinstance(value, dict)]
        choices = (
            Choice(
                key=clean(key), text=text(option, "text"), order=clean(str(option.get("order", "")))
            )
            for key, option in options
        )
        return {"choices": tuple(choices)}
    if kind is FieldKind.EXTERNAL_ACCOUNT:
        return {"account": text(data, "subtype"), "url_pattern": text(data, "url_pattern")}
    return {}
