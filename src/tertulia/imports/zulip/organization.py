"""The organization of a Zulip export as neutral records."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from tertulia.imports.records import (
    Holders,
    Key,
    SourceAttachment,
    SourceBot,
    SourceChannel,
    SourceDraft,
    SourceEmoji,
    SourceFile,
    SourceFolder,
    SourceGroup,
    SourceLinkifier,
    SourceOrganization,
    SourcePlayground,
    SourceProfileField,
    SourceReminder,
    SourceScheduled,
    SourceSnippet,
    SourceStatus,
    SourceUser,
    SourceUserTopic,
    SourceView,
)
from tertulia.imports.zulip.links import LocalLinks
from tertulia.imports.zulip.realm import REMINDER, ExportedRealm
from tertulia.imports.zulip.rows import (
    EMOJI_KINDS,
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
    group_permissions,
    realm_settings,
    user_settings,
)
from tertulia.imports.zulip.subscriptions import Conversations, subscriptions
from tertulia.imports.zulip.tables import records
from tertulia.model.channels import TopicsPolicy
from tertulia.model.drafts import DraftKind
from tertulia.model.profiles import Choice, FieldKind
from tertulia.model.reactions import EmojiKind
from tertulia.model.user_topics import Visibility
from tertulia.model.users import BotKind, Role

_ARCHIVED_NAME: Final = re.compile(r"(?:[0-9a-f]{7})?!+DEACTIVATED:")
_NO_ADDRESS: Final = re.compile(r"exported-user-[0-9a-f]+@.*")
"""The addresses of people whose own ones aren't in the export."""
_TOPICS: Final = {
    1: TopicsPolicy.INHERIT,
    2: TopicsPolicy.ALLOW_EMPTY,
    3: TopicsPolicy.DISABLE_EMPTY,
    4: TopicsPolicy.EMPTY_ONLY,
}
SLACK_FORMAT: Final = 2


class ZulipOrganization:
    """Makes the records from the export's tables."""

    def __init__(self, realm: ExportedRealm, directory: Path, conversations: Conversations) -> None:
        self._realm = realm
        self._rows = realm.rows
        self._report = realm.report
        self._directory = directory
        self._conversations = conversations
        self._links = LocalLinks(realm.host)
        self._own = self._rows("zerver_realm")[0]
        self._groups = _Groups(realm)
        self._clients = clients(realm)

    def read(self) -> SourceOrganization:
        """Return everything but messages."""
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
            users=tuple(self._users()),
            system_bots=self._conversations.system_bots,
            groups=tuple(self._groups.named()),
            folders=tuple(self._folders()),
            channels=tuple(self._channels()),
            subscriptions=tuple(subscriptions(self._realm, self._conversations, self._directory)),
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

    # People

    def _users(self) -> Iterator[SourceUser]:
        by_user = _ByUser(self._realm)
        avatars = self._avatars()
        rows = [
            *self._valid("zerver_userprofile", "people"),
            *self._valid("zerver_userprofile_mirrordummy", "people"),
        ]
        # If two have the same address, the importer takes the first account: one that is in use.
        for row in sorted(rows, key=lambda row: (not flag(row, "is_active", True), row["id"])):
            key: int = row["id"]
            address = text(row, "delivery_email") or text(row, "email")
            if _NO_ADDRESS.fullmatch(address):
                address = ""
            picture = avatars.get(key) if text(row, "avatar_source") == "U" else None
            role = number(row, "role")
            if role not in {one.value for one in Role}:
                self._report.change("people", "The role is unknown, so it's a member.", address)
                role = Role.MEMBER
            name = text(row, "full_name")
            if len(name) < 2:
                name = f"User {key}" if not name else f"{name} ({key})"
            is_placeholder = flag(row, "is_mirror_dummy")
            yield SourceUser(
                key=key,
                full_name=name,
                address=address,
                role=Role(role),
                is_active=flag(row, "is_active", True) and not is_placeholder,
                is_placeholder=is_placeholder or flag(row, "is_imported_stub"),
                joined_at=seconds(row, "date_joined"),
                timezone=text(row, "timezone"),
                avatar=picture,
                uses_gravatar=text(row, "avatar_source") == "G",
                bot=self._bot(row, by_user) if flag(row, "is_bot") else None,
                settings=row.get("settings", {}),
                profile=by_user.profiles.get(key, {}),
                alert_words=tuple(dict.fromkeys(by_user.words.get(key, ()))),
                muted=by_user.muted.get(key, {}),
                status=by_user.statuses.get(key),
                onboarding_steps=tuple(dict.fromkeys(by_user.steps.get(key, ()))),
                invitable=not is_placeholder,
            )

    def _bot(self, row: Row, by_user: "_ByUser") -> SourceBot:
        key = row["id"]
        service: Row = by_user.services.get(key, {})
        kind = number(row, "bot_type")
        if kind not in {one.value for one in BotKind}:
            name = text(row, "full_name")
            self._report.change("bots", "The kind is unknown, so it's a generic bot.", name)
            kind = BotKind.GENERIC
        return SourceBot(
            kind=BotKind(kind),
            owner=number(row, "bot_owner"),
            service_url=text(service, "base_url"),
            service_is_slack=service.get("interface") == SLACK_FORMAT,
            program=text(service, "name"),
            token=text(service, "token"),
            default_channel=number(row, "default_sending_stream"),
            default_events_channel=number(row, "default_events_register_stream"),
            default_all_public_channels=flag(row, "default_all_public_streams"),
            config=by_user.config.get(key, {}),
            storage=by_user.storage.get(key, {}),
        )

    def _avatars(self) -> dict[int, SourceFile]:
        """Return the pictures by user: as they were uploaded, if the export has that."""
        found: dict[int, SourceFile] = {}
        for row in records(self._directory / "avatars" / "records.json"):
            key, path = number(row, "user_profile_id"), text(row, "path")
            if key is None or not path or path.endswith("-medium.png"):
                continue
            if key not in found or path.endswith(".original"):
                found[key] = SourceFile(place=f"avatars/{path}")
        return found

    # The organization's lists

    def _realm_picture(self, name: str) -> SourceFile | None:
        if text(self._own, f"{name}_source") != "U":
            return None
        found = None
        for row in records(self._directory / "realm_icons" / "records.json"):
            path = text(row, "path")
            file = path.rpartition("/")[2]
            if file == f"{name}.original" or (file == f"{name}.png" and found is None):
                found = SourceFile(place=f"realm_icons/{path}")
        return found

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
            if row["field_type"] not in {one.value for one in FieldKind}:
                self._report.skip(
                    "profile fields", "The kind of field is unknown.", text(row, "name")
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
            if not template:  # Before URL templates, it was a format of Python's.
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
                        clean(one)
                        for one in (others if isinstance(others, list) else ())
                        if isinstance(one, str)
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
        # Of an archived channel and a present one with the same name, that one keeps it.
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

    # What people have

    def _user_topics(self) -> Iterator[SourceUserTopic]:
        policies = {one.value for one in Visibility} - {0}
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
                "reminders", "The export doesn't tell its message.", text(row, "content")
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
    """Return the attachment of a row of the scratch file."""
    _message, key, owner, path, name, media_type, size, created_at = row
    return SourceAttachment(
        key=key,
        owner=owner,
        path=path,
        file=SourceFile(place=f"uploads/{path}", name=name, media_type=media_type, size=size),
        created_at=created_at,
    )


def _others(people: tuple[int, ...], user: int) -> tuple[int, ...]:
    """Return the others of a conversation, or the user if they are alone."""
    return tuple(one for one in people if one != user) or people


def _object(value: Any) -> dict[str, Any]:
    """Return the object in a JSON text, or an empty one."""
    if not isinstance(value, str) or not value:
        return {}
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _field_details(kind: FieldKind, data: dict[str, Any]) -> dict[str, Any]:
    if kind is FieldKind.CHOICE:
        options = [(key, one) for key, one in data.items() if isinstance(one, dict)]
        choices = (
            Choice(key=clean(key), text=text(one, "text"), order=clean(str(one.get("order", ""))))
            for key, one in options
        )
        return {"choices": tuple(choices)}
    if kind is FieldKind.EXTERNAL_ACCOUNT:
        return {"account": text(data, "subtype"), "url_pattern": text(data, "url_pattern")}
    return {}


class _ByUser:
    """Small tables, by user."""

    def __init__(self, realm: ExportedRealm) -> None:
        rows = realm.rows
        self.words: dict[int, list[str]] = defaultdict(list)
        self.muted: dict[int, dict[Key, int]] = defaultdict(dict)
        self.steps: dict[int, list[str]] = defaultdict(list)
        self.statuses: dict[int, SourceStatus] = {}
        self.profiles: dict[int, dict[int | str, str]] = defaultdict(dict)
        self.services: dict[int, Row] = {}
        self.config: dict[int, dict[str, str]] = defaultdict(dict)
        self.storage: dict[int, dict[str, str]] = defaultdict(dict)
        for row in rows("zerver_alertword"):
            if (user := number(row, "user_profile")) is not None and text(row, "word"):
                self.words[user].append(text(row, "word"))
        for row in rows("zerver_muteduser"):
            user, other = number(row, "user_profile"), number(row, "muted_user")
            if user is not None and other is not None:
                self.muted[user][other] = seconds(row, "date_muted")
        for row in (*rows("zerver_onboardingstep"), *rows("zerver_userhotspot")):
            step = text(row, "onboarding_step") or text(row, "hotspot")
            if (user := number(row, "user")) is not None and step:
                self.steps[user].append(step)
        for row in rows("zerver_userstatus"):
            status = SourceStatus(
                text=text(row, "status_text"),
                emoji=text(row, "emoji_name"),
                kind=EMOJI_KINDS.get(text(row, "reaction_type"), EmojiKind.UNICODE),
                code=text(row, "emoji_code"),
            )
            if (user := number(row, "user_profile")) is not None and (status.text or status.emoji):
                self.statuses[user] = status
        people = {
            number(row, "id")
            for row in rows("zerver_customprofilefield")
            if row.get("field_type") == FieldKind.PEOPLE
        }
        for row in rows("zerver_customprofilefieldvalue"):
            user, field = number(row, "user_profile"), number(row, "field")
            value = text(row, "value")
            if user is None or field is None or not value:
                continue
            if field in people and not _is_list_of_numbers(value):
                realm.report.skip("profile values", "It isn't a list of people.", value)
                continue
            self.profiles[user][field] = value
        for row in rows("zerver_service"):
            if (user := number(row, "user_profile")) is not None:
                self.services.setdefault(user, row)
        for table, values in (
            ("zerver_botconfigdata", self.config),
            ("zerver_botstoragedata", self.storage),
        ):
            for row in rows(table):
                if (user := number(row, "bot_profile")) is not None and text(row, "key"):
                    values[user][text(row, "key")] = text(row, "value")


def _is_list_of_numbers(value: str) -> bool:
    try:
        msgspec.json.decode(value, type=list[int])
    except msgspec.DecodeError:
        return False
    return True


class _Groups:
    """User groups. The value of a permission is a group too: one without a name, if no other has
    the same members."""

    def __init__(self, realm: ExportedRealm) -> None:
        self._report = realm.report
        self._known: set[int] = set()
        self._named: dict[int, Row] = {}
        self._system: dict[int, str] = {}
        # Until 2024, the groups themselves had names.
        for row in (*realm.rows("zerver_usergroup"), *realm.rows("zerver_namedusergroup")):
            key = number(row, "usergroup_ptr")
            key = number(row, "id") if key is None else key
            if key is None:
                realm.report.skip("groups", "A row of the export lacks its ID.", row)
                continue
            self._known.add(key)
            name = text(row, "name").removeprefix("@")
            if flag(row, "is_system_group") and name.startswith("role:"):
                self._system[key] = name
            elif name:
                self._named[key] = row
        self._members: dict[int, list[int]] = defaultdict(list)
        self._subgroups: dict[int, list[int]] = defaultdict(list)
        for row in realm.rows("zerver_usergroupmembership"):
            group, user = number(row, "user_group"), number(row, "user_profile")
            if group is not None and user is not None and group not in self._system:
                self._members[group].append(user)
        for row in realm.rows("zerver_groupgroupmembership"):
            group, below = number(row, "supergroup"), number(row, "subgroup")
            if group is not None and below is not None and group not in self._system:
                self._subgroups[group].append(below)
        self._break_circles()

    def _break_circles(self) -> None:
        done: set[int] = set()
        for start in tuple(self._subgroups):
            # Depth first, with the path from the start.
            path: list[int] = []
            on_path: set[int] = set()
            stack: list[tuple[int, bool]] = [(start, True)]
            while stack:
                group, is_arriving = stack.pop()
                if not is_arriving:
                    path.pop()
                    on_path.discard(group)
                    done.add(group)
                    continue
                if group in on_path:
                    above = path[-1]
                    self._subgroups[above].remove(group)
                    self._report.change(
                        "groups", "A group contained itself; it no longer does.", group
                    )
                    continue
                if group in done:
                    continue
                path.append(group)
                on_path.add(group)
                stack.append((group, False))
                stack += [(one, True) for one in self._subgroups.get(group, ())]

    def _keys(self, groups: list[int]) -> tuple[int | str, ...]:
        return tuple(
            self._system.get(one, one)
            for one in groups
            if one in self._system or one in self._named
        )

    def holders(self, value: Any) -> Holders | None:
        """Return who is in a group."""
        if not isinstance(value, int) or isinstance(value, bool) or value not in self._known:
            if value is not None:
                self._report.change(
                    "permissions", "Its group isn't in the export, so it has the default.", value
                )
            return None
        if value in self._system or value in self._named:
            return Holders(groups=self._keys([value]))
        return Holders(
            people=tuple(self._members.get(value, ())),
            groups=self._keys(self._subgroups.get(value, [])),
        )

    def named(self) -> Iterator[SourceGroup]:
        """Yield the groups with a name."""
        for key, row in sorted(self._named.items()):
            yield SourceGroup(
                key=key,
                name=text(row, "name"),
                description=text(row, "description"),
                created_at=seconds(row, "date_created") or None,
                creator=number(row, "creator"),
                members=tuple(self._members.get(key, ())),
                subgroups=self._keys(self._subgroups.get(key, [])),
                deactivated=flag(row, "deactivated"),
                permissions=group_permissions(row, self.holders),
            )
