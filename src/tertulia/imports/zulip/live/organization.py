"""Making the organization equal to the one on a running Zulip: people, groups, channels,
subscriptions, and settings. All IDs are the same on both."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import fields, replace

from tertulia.domain import names
from tertulia.domain.accounts import deactivation, users
from tertulia.domain.channels import channels, subscription_changes
from tertulia.domain.groups import groups
from tertulia.imports.records import Holders
from tertulia.imports.report import ImportReport
from tertulia.imports.zulip.live.previous_state import PreviousState, rows
from tertulia.imports.zulip.rows import Row, days, flag, number, numbers, seconds, text
from tertulia.imports.zulip.settings import (
    channel_permissions,
    group_permissions,
    realm_settings,
)
from tertulia.markup.render import Renderer
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel, TopicsPolicy
from tertulia.model.errors import Refused
from tertulia.model.folders import ChannelFolder
from tertulia.model.groups import UserGroup
from tertulia.model.organization import Realm
from tertulia.model.users import Bot, BotKind, Credential, NewApiKey, Role, User
from tertulia.service.credentials import Vault, key_digest
from tertulia.service.previous_server import is_key
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

_HOST: Final = "imported.invalid"
"""The host of placeholder addresses for people whose address is hidden."""
_NOT_FOLLOWED: Final = frozenset(
    {
        *("icon", "logo", "night_logo", "moving_from", "deactivated", "uuid", "created_at"),
        *("name", "description", "rendered_description", "password_sign_in"),
        *("inline_url_embed_preview", "invite_required", "presence_disabled"),
        # Limits of this server.
        *("max_channels_per_user", "max_groups_per_user", "max_bots_per_user"),
        *("max_drafts_per_user", "max_unfinished_uploads_per_user", "upload_quota_per_user_mib"),
    }
)

Verb = Callable[[CommandContext], list[AnyChange]]
"""Returns the changes that make one record equal; empty if it's equal already."""


class LiveOrganization:
    """Makes the verbs, each for one record, in an order in which each can be decided."""

    def __init__(self, there: PreviousState, vault: Vault, report: ImportReport) -> None:
        self._there = there
        self._vault = vault
        self._report = report
        self._renderer = Renderer()

    def verbs(self) -> Iterator[Verb]:
        """Yield the verbs that make everything equal, one record at a time."""
        # Defaults bind each loop's values; mypy can't infer the types of such functions.
        state = self._there.state
        people = [*rows(state, "realm_users"), *rows(state, "realm_non_active_users")]
        for row in sorted(people, key=lambda row: flag(row, "is_bot")):
            key = number(row, "user_id")
            if key and key not in self._there.bots:
                yield lambda c, row=row, key=key: self._user(c, key, row)  # type: ignore[misc]
        for row in rows(state, "realm_user_groups"):
            key = number(row, "id")
            if key and key not in self._there.system:
                yield lambda c, row=row, key=key: self._group(c, key, row)  # type: ignore[misc]
        for row in rows(state, "realm_user_groups"):
            key = number(row, "id")
            if key and key not in self._there.system:
                yield lambda c, row=row, key=key: self._contents(c, key, row)  # type: ignore[misc]
        for row in rows(state, "channel_folders"):
            yield lambda c, row=row: self._folder(c, row)  # type: ignore[misc]
        for row in self._there.channels:
            key = number(row, "stream_id")
            if key:
                yield lambda c, row=row, key=key: self._channel(c, key, row)  # type: ignore[misc]
        for kind in ("subscriptions", "unsubscribed", "never_subscribed"):
            for row in rows(state, kind):
                yield lambda c, row=row: self._subscribers(c, row)  # type: ignore[misc]
        for row in rows(state, "realm_bots"):
            yield lambda c, row=row: self._key(c, row)  # type: ignore[misc]
        yield self._settings

    # People

    def _user(self, context: CommandContext, key: int, row: Row) -> list[AnyChange]:
        state = context.state
        known = state.users.get(key)
        role = number(row, "role") or Role.MEMBER
        values: dict[str, Any] = {
            "full_name": _final(names.full_name, text(row, "full_name")) or f"User {key}",
            "role": Role(role) if role in set(Role) else Role.MEMBER,
            "timezone": text(row, "timezone")[:50],
        }
        address = _final(names.address, text(row, "delivery_email") or text(row, "email"))
        is_hidden = row.get("delivery_email") is None and "delivery_email" in row
        owner = state.user_with_address(address) if address else None
        if not is_hidden and address and (owner is None or owner.id == key):
            values["address"] = address
        is_active = flag(row, "is_active", True)
        if known is None:
            return [self._created(context, key, row, values)]
        changes = users.account_changes(context, known, values)
        if known.is_active and not is_active:
            changes.append(deactivation.deactivation_change(context, known))
        if not known.is_active and is_active and not known.is_deleted:
            changes.append(deactivation.reactivation_change(context, known))
        return changes

    def _created(
        self, context: CommandContext, key: int, row: Row, values: Mapping[str, Any]
    ) -> AnyChange:
        bot = None
        if flag(row, "is_bot"):
            kind = number(row, "bot_type")
            bot = Bot(
                kind=BotKind(kind) if kind in set(BotKind) else BotKind.GENERIC,
                owner_id=number(row, "bot_owner_id"),
            )
            if bot.kind in {BotKind.OUTGOING_WEBHOOK, BotKind.EMBEDDED}:
                self._report.skip(
                    "services of bots", "Set up the bot's service again.", values["full_name"]
                )
        is_active = flag(row, "is_active", True)
        joined_at = _time(text(row, "date_joined")) or int(context.now)
        user = User(
            id=key,
            joined_at=joined_at,
            joined_elsewhere=True,
            awaits_arrival=bot is None and is_active,
            is_active=is_active,
            is_placeholder=flag(row, "is_imported_stub"),
            avatar_source="G" if row.get("avatar_url") is None else "J",
            bot=bot,
            **{"address": f"user{key}@{_HOST}", **values},
        )
        new = self._vault.new_key()
        self._report.count("people" if bot is None else "bots")
        return users.creation_change(
            context.state,
            user,
            Credential(
                user_id=key,
                key_digest=new.digest,
                key_sealed=new.sealed,
                adopts_key=True,
                adopts_password=bot is None,
            ),
        )

    def _key(self, context: CommandContext, row: Row) -> list[AnyChange]:
        """Keep the API key of a bot, which administrators can read."""
        credential = context.state.credentials.get(number(row, "user_id"))
        key = text(row, "api_key")
        if credential is None or not credential.adopts_key or not is_key(key):
            return []
        digest = key_digest(key)
        if digest in context.state.credentials.by_key_digest:
            return []
        kept = users.with_key(credential, NewApiKey(digest=digest, sealed=self._vault.sealed(key)))
        return [changes.CredentialChanged(credential=kept)]

    # Groups

    def _group(self, context: CommandContext, key: int, row: Row) -> list[AnyChange]:
        known = context.state.groups.get(key)
        name = text(row, "name")[: names.MAX_GROUP_NAME]
        if not name or any(
            group.name == name and group.id != key for group in context.state.groups
        ):
            name = f"group {key}" if known is None else known.name
        values: dict[str, Any] = {
            "name": name,
            "description": text(row, "description")[: names.MAX_GROUP_DESCRIPTION],
        }
        if known is None:
            self._report.count("groups")
            return [
                changes.UserGroupCreated(
                    group=UserGroup(
                        id=key,
                        created_at=seconds(row, "date_created") or int(context.now),
                        creator_id=number(row, "creator_id"),
                        **values,
                    )
                )
            ]
        values["deactivated"] = flag(row, "deactivated")
        return _group_changed(known, values)

    def _contents(self, context: CommandContext, key: int, row: Row) -> list[AnyChange]:
        """Return the changes that make the group's members, subgroups, and permissions equal."""
        state = context.state
        known = state.groups[key]
        members = {user_id for user_id in numbers(row, "members") if user_id in state.users}
        below = {
            group
            for group_id in numbers(row, "direct_subgroup_ids")
            if (group := self._there.system.get(group_id, group_id)) in state.groups
            and group != key
            and key not in state.memberships.subgroups(group)
        }
        change = changes.UserGroupMembersChanged(
            group_id=key,
            added=tuple(sorted(members - set(known.members))),
            removed=tuple(sorted(set(known.members) - members)),
            added_groups=tuple(sorted(below - set(known.subgroups))),
            removed_groups=tuple(sorted(set(known.subgroups) - below)),
            deactivated=known.deactivated,
        )
        results: list[AnyChange] = []
        if change.added or change.removed or change.added_groups or change.removed_groups:
            sight = groups.compare_sight(state, known, change)
            results.append(replace(change, sight=sight))
        values = self._permissions(state, group_permissions(row, _holders), row)
        values |= {"deactivated": flag(row, "deactivated")}
        return [*results, *_group_changed(known, values)]

    def _permissions(self, state: State, given: Mapping[str, Holders], row: Row) -> dict[str, Any]:
        result = {name: self._there.setting(state, row[name]) for name in given if name in row}
        return {name: value for name, value in result.items() if value is not None}

    # Channels

    def _folder(self, context: CommandContext, row: Row) -> list[AnyChange]:
        key, state = number(row, "id"), context.state
        if not key or key in state.folders:
            return []
        name = _final(names.folder_name, text(row, "name")) or f"folder {key}"
        description = text(row, "description")[: names.MAX_FOLDER_DESCRIPTION]
        self._report.count("folders")
        folder = ChannelFolder(
            id=key,
            name=name,
            description=description,
            rendered_description=self._html(context, description),
            order=number(row, "order") or len(state.folders),
            created_at=seconds(row, "date_created") or None,
            creator_id=number(row, "creator_id"),
            is_archived=flag(row, "is_archived"),
        )
        return [changes.ChannelFolderCreated(folder=folder)]

    def _channel(self, context: CommandContext, key: int, row: Row) -> list[AnyChange]:
        state = context.state
        known = state.channels.get(key)
        name = _final(names.channel_name, text(row, "name"))
        other = state.channel_named(name) if name else None
        if not name or (other is not None and other.id != key):
            name = f"channel {key}" if known is None else known.name
        description = text(row, "description").replace("\n", " ")
        description = description[: names.MAX_CHANNEL_DESCRIPTION]
        folder, retention = number(row, "folder_id"), days(row, "message_retention_days")
        is_private, is_archived = flag(row, "invite_only"), flag(row, "is_archived")
        try:
            policy = TopicsPolicy(text(row, "topics_policy"))
        except ValueError:
            policy = TopicsPolicy.INHERIT
        values: dict[str, Any] = {
            "name": name,
            "description": description,
            "is_private": is_private,
            "is_web_public": flag(row, "is_web_public") and not is_private,
            "is_archived": is_archived,
            "is_default": flag(row, "is_default") and not is_private and not is_archived,
            "history_public": flag(row, "history_public_to_subscribers", True) or not is_private,
            "retention_days": retention if retention and retention <= 36_500 else None,
            "topics_policy": policy,
            "folder_id": folder if folder in state.folders else None,
            **self._permissions(state, channel_permissions(row, _holders), row),
        }
        if known is not None:
            if description != known.description:
                values["rendered_description"] = self._html(context, description)
            if is_archived and not known.is_archived:
                values["read_until"] = state.last_message_id
            after = replace(known, **values)
            return [] if after == known else [channels.channel_change(state, known, after)]
        self._report.count("channels")
        channel = Channel(
            id=key,
            rendered_description=self._html(context, description),
            created_at=seconds(row, "date_created") or int(context.now),
            creator_id=self._there.user(number(row, "creator_id")),
            **values,
        )
        return [changes.ChannelCreated(channel=channel)]

    def _subscribers(self, context: CommandContext, row: Row) -> list[AnyChange]:
        state = context.state
        channel = state.channels.get(number(row, "stream_id"))
        if channel is None or not isinstance(row.get("subscribers"), list):
            return []
        there = {
            user_id
            for user_id in numbers(row, "subscribers")
            if (u := state.users.get(user_id)) and u.is_active
        }
        subscribers = set(state.subscribers(channel.id))
        if not there and (channel.is_private or number(row, "subscriber_count")):
            return []  # The owner can't see the list.
        changes: list[AnyChange] = []
        if joining := sorted(there - subscribers):
            people = [state.users[user_id] for user_id in joining]
            changes.append(subscription_changes.subscription_change(state, channel, people, {}))
        if leaving := sorted(subscribers - there):
            people = [state.users[user_id] for user_id in leaving]
            changes.append(subscription_changes.unsubscription_change(state, channel, people))
        return changes

    # The organization

    def _settings(self, context: CommandContext) -> list[AnyChange]:
        given = self._there.state
        rows = {
            name.removeprefix("realm_").removesuffix("_id")
            if name.endswith("_stream_id")
            else name.removeprefix("realm_"): value
            for name, value in given.items()
            if name.startswith("realm_")
        }
        types = {field.name: field.type for field in fields(Realm)}
        values: dict[str, Any] = {}
        for name, value in realm_settings(rows, _holders).items():
            if name not in types or name in _NOT_FOLLOWED:
                continue
            if isinstance(value, Holders):
                value = self._there.setting(context.state, rows[name])
            if value is None and name.endswith(("_group", "_groups")):
                continue
            try:
                final = msgspec.convert(value, types[name], from_attributes=True)
            except msgspec.ValidationError:
                continue
            if final != getattr(context.state.realm, name):
                values[name] = final
        realm_name = _final(names.realm_name, text(given, "realm_name"))
        if realm_name and realm_name != context.state.realm.name:
            values["name"] = realm_name
        description = text(given, "realm_description")[: names.MAX_REALM_DESCRIPTION]
        if description != context.state.realm.description:
            values["description"] = description
            values["rendered_description"] = self._html(context, description)
        return [changes.RealmChanged(values=values)] if values else []

    def _html(self, context: CommandContext, content: str) -> str:
        return self._renderer.render(context, content).html if content else ""


def changed(context: CommandContext, verb: Verb) -> Decision[bool]:
    """Make one record equal. Return whether it differed."""
    changes = verb(context)
    return Decision(bool(changes), changes)


def differences(state: State, there: Row) -> list[str]:
    """Return the differences that following doesn't copy, a sentence for each kind."""
    emoji = there.get("realm_emoji")
    names_there = {
        text(value, "name")
        for value in (emoji.values() if isinstance(emoji, dict) else ())
        if isinstance(value, dict) and not flag(value, "deactivated")
    }
    names_here = {emoji.name for emoji in state.custom_emoji if not emoji.deactivated}
    counted = {
        "linkifiers": (len(rows(there, "realm_linkifiers")), len(state.linkifiers)),
        "code playgrounds": (len(rows(there, "realm_playgrounds")), len(state.playgrounds)),
        "profile fields": (
            len(rows(there, "custom_profile_fields")),
            len(state.profile_fields),
        ),
    }
    differences = [
        f"{what}: {number_there:,} there, {number_here:,} here"
        for what, (number_there, number_here) in counted.items()
        if number_there != number_here
    ]
    if names_there != names_here:
        differing = ", ".join(sorted(names_there ^ names_here)[:20])
        differences.append(f"custom emoji that only one of them has: {differing}")
    return differences


def _group_changed(known: UserGroup, values: Mapping[str, Any]) -> list[AnyChange]:
    new = {name: value for name, value in values.items() if getattr(known, name) != value}
    if not new:
        return []
    return [changes.UserGroupChanged(group_id=known.id, values=new, deactivated=known.deactivated)]


def _holders(_: Any) -> Holders:
    """Accept any value of a permission: the caller reads the value itself."""
    return Holders()


def _final(check: Callable[[str], str], given: str) -> str:
    """Return the text in its final form, or an empty one if it isn't allowed here."""
    try:
        return check(given)
    except Refused:
        return ""


def _time(given: str) -> int:
    try:
        result = datetime.fromisoformat(given)
    except ValueError:
        return 0
    return max(0, int(result.replace(tzinfo=result.tzinfo or UTC).timestamp()))
