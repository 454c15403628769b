"""Exporting a person's data as a ZIP file: readable JSON, their files, and a page that lists
them. It contains what the person wrote, did, and chose, without secrets. Of other people's data,
it contains only what is needed to understand it: the names of conversations that the person can
see."""

import asyncio
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tertulia.domain import channel_access, permissions
from tertulia.domain.messages.attachments import name_in_path
from tertulia.markup import addresses
from tertulia.model.channels import Subscription
from tertulia.model.exports import DataExport
from tertulia.model.messages import Message, MessageEdit, MessagePlace
from tertulia.model.pins import Pin
from tertulia.model.user_topics import UserTopic
from tertulia.service.files.pictures import avatar_paths
from tertulia.service.files.uploads import require_disk_space
from tertulia.service.node import Node
from tertulia.service.personal_archive import Page, PersonalArchive, utc_text
from tertulia.store import log_entries, personal_data
from tertulia.store.database import Connection
from tertulia.store.personal_data import LinkedMessage, entries_by, reactions_by, submessages_by

T = TypeVar("T")

PAGE: Final = 50
"""The number of messages per read. Each can have many edits."""
STARS_PAGE: Final = 1000
RANGE: Final = 20_000
"""The number of message IDs, or log entries, that one read scans for the person's data."""
PER_FILE: Final = 10_000
"""The number of messages per file, so that programs can open it."""
MAX_PAUSE: Final = 0.5
"""The longest pause in seconds. After each read, the export pauses for as long as the read took, so
that others can use the database."""
DAY: Final = 86400

SECRETS: Final = frozenset(
    {"auth", "avatar_file", "digest", "digests", "endpoint", "nonce", "p256dh", "sealed", "token"}
)
"""Fields that are left out: secrets and internal names."""
_DERIVED: Final = frozenset({"rendered", "key", "edited_by_owner", "began", "spans"})

RECORDS: Final[Mapping[str, str]] = {
    "agent_keys": "access_keys.json",
    "alert_words": "alert_words.json",
    "attachments": "files.json",
    "call_accounts": "call_accounts.json",
    "data_exports": "data_exports.json",
    "devices": "devices.json",
    "drafts": "drafts.json",
    "identities": "identities.json",
    "muted_users": "muted_users.json",
    "navigation_views": "navigation_views.json",
    "onboarding_steps": "onboarding_steps.json",
    "personal_settings": "settings.json",
    "profile_values": "profile.json",
    "push_subscriptions": "push_subscriptions.json",
    "push_tokens": "push_tokens.json",
    "quiet_times": "quiet_times.json",
    "reminders": "reminders.json",
    "second_factors": "second_factors.json",
    "scheduled_messages": "scheduled_messages.json",
    "sessions": "sessions.json",
    "snippets": "snippets.json",
    "subscriptions": "channels.json",
    "user_statuses": "status.json",
    "user_topics": "topics.json",
}
"""Tables of records with a `user_id`, and the file for each."""
OMITTED: Final = frozenset({"confirmations", "credentials", "recovery_codes", "topic_moves"})
"""Such tables that are left out here: they're written separately, have only secrets, or only exist
for seconds."""


async def export_person(node: Node, export: DataExport, path: Path) -> None:
    """Write the data of the person who requested the export to a file. Raise UploadQuotaReached if
    the disk is almost full."""
    # The file, and its copy in the storage.
    space = sum(attachment.size for attachment in node.state.uploads.of_user[export.user_id])
    await require_disk_space(node, 2 * space)
    await write_person(node, export.user_id, path)


async def write_person(node: Node, user_id: int, path: Path) -> None:
    """Write all data of a person to a ZIP file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        await _Writer(node, user_id, archive).write()


class _Writer:
    def __init__(self, node: Node, user_id: int, archive: zipfile.ZipFile) -> None:
        self._node, self._user_id = node, user_id
        self._archive = PersonalArchive(archive)

    async def write(self) -> None:
        await self._write_records()
        await self._write_messages()
        await self._archive.write_list("stars.json", self._stars())
        await self._archive.write_list("reactions.json", self._reactions())
        await self._archive.write_list("widgets.json", self._widgets())
        await self._archive.write_list("log.json", self._entries())
        await self._write_files()
        state = self._node.state
        name = f"{state.users[self._user_id].full_name}: data from {state.realm.name}"
        await self._archive.write_index(name, self._node.clock())

    # Records in memory

    async def _write_records(self) -> None:
        state, user_id = self._node.state, self._user_id
        user = state.users[user_id]
        presence, days = await self._read(
            lambda c: (personal_data.presence_of(c, user_id), personal_data.days_of(c, user_id))
        )
        account = {
            **_readable(user),
            "has_password": state.credentials[user_id].password_hash is not None,
            "last_active": utc_text(presence[0]) if presence else None,
            "unconfirmed_addresses": [
                confirmation.address
                for confirmation in state.confirmations
                if confirmation.user_id == user_id
            ],
        }
        await self._archive.write_list("account.json", _each([account]))
        for table, name in RECORDS.items():
            records = [value for value in state.tables[table] if value.user_id == user_id]
            if table == "subscriptions":
                times = await self._read(partial(personal_data.times_of, records))
                await self._archive.write_list(name, _each(self._channels(records, times)))
            else:
                await self._archive.write_list(
                    name, _each(self._named(record) for record in records)
                )
        others: Mapping[str, Iterable[Struct]] = {
            "bots.json": state.users.bots_of(user_id),
            "emoji.json": [emoji for emoji in state.custom_emoji if emoji.author_id == user_id],
            "invitations.json": [
                invitation for invitation in state.invitations if invitation.inviter_id == user_id
            ],
            "pins.json": [pin for pin in state.pins if pin.pinned_by == user_id],
        }
        for name, result in others.items():
            await self._archive.write_list(name, _each(self._named(item) for item in result))
        groups = [
            group for group in state.groups if user_id in group.members and not group.is_system
        ]
        listed = ({"id": group.id, "name": group.name} for group in groups)
        await self._archive.write_list("groups.json", _each(listed))
        activity = ({"day": _day(day), "messages_sent": sent} for day, sent in days)
        await self._archive.write_list("activity.json", _each(activity))

    def _named(self, record: Struct) -> dict[str, Any]:
        """Return a record with the names of the things that its IDs refer to."""
        state, result = self._node.state, _readable(record)
        if (channel_id := getattr(record, "channel_id", None)) is not None:
            result["channel"] = self._channel(channel_id)
            if isinstance(record, UserTopic | Pin) and not self._reads(channel_id):
                for name in ("topic", "name"):
                    result.pop(name, None)
        if (field_id := getattr(record, "field_id", None)) is not None:
            result["field"] = state.profile_fields[field_id].name
        return result

    def _channels(
        self, subscriptions: Iterable[Subscription], times: Mapping[int, int]
    ) -> Iterator[dict[str, Any]]:
        """Yield subscriptions with their periods. Each begins and ends at a message, so its times
        are those of the newest message before."""
        for subscription in subscriptions:
            periods = [
                {
                    "from": utc_text(times[after]) if after in times else None,
                    "until": utc_text(times[until or 0]) if until in times else None,
                    "is_active": until is None,
                }
                for after, until in subscription.spans
            ]
            yield {**self._named(subscription), "periods": periods}

    # Rows in the database, in pages

    async def _write_messages(self) -> None:
        pages = self._messages()
        page: Page = await anext(pages, [])

        async def part() -> AsyncIterator[Page]:
            nonlocal page
            written = 0
            while page and written < PER_FILE:
                yield page
                written += len(page)
                page = await anext(pages, [])

        number = 0
        while page or not number:
            number += 1
            await self._archive.write_list(f"messages-{number:04}.json", part())

    async def _messages(self) -> AsyncIterator[Page]:
        after = 0

        def look(connection: Connection) -> tuple[list[Message], dict[int, list[MessageEdit]]]:
            messages = personal_data.messages_by(connection, self._user_id, after, PAGE)
            ids = [message.id for message in messages]
            return messages, personal_data.edits_by(connection, self._user_id, ids)

        while True:
            messages, edits = await self._read(look)
            if not messages:
                return
            after = messages[-1].id
            yield [self._message(message, edits.get(message.id, [])) for message in messages]

    def _message(self, message: Message, edits: list[MessageEdit]) -> dict[str, Any]:
        return {
            "id": message.id,
            "sent_at": utc_text(message.sent_at),
            **self._conversation(message),
            "content": message.content,
            "client": message.client,
            "edits": [
                {"at": utc_text(edit.at), "previous_content": edit.was_content}
                for edit in edits
                if edit.was_content is not None
            ],
        }

    async def _stars(self) -> AsyncIterator[Page]:
        after = 0

        def look(connection: Connection) -> list[LinkedMessage]:
            return personal_data.starred(connection, self._user_id, after, STARS_PAGE)

        while linked_messages := await self._read(look):
            after = linked_messages[-1].id
            yield [self._linked(linked_message) for linked_message in linked_messages]

    async def _reactions(self) -> AsyncIterator[Page]:
        async for linked_messages in self._in_ranges(
            0, self._node.state.last_message_id, reactions_by
        ):
            yield [
                {**self._linked(linked_message), "emoji": linked_message.facts[0]}
                for linked_message in linked_messages
            ]

    async def _widgets(self) -> AsyncIterator[Page]:
        async for linked_messages in self._in_ranges(
            0, self._node.state.last_message_id, submessages_by
        ):
            yield [
                {
                    **self._linked(linked_message),
                    "kind": linked_message.facts[0],
                    "content": linked_message.facts[1],
                }
                for linked_message in linked_messages
            ]

    async def _entries(self) -> AsyncIterator[Page]:
        first, last = await self._read(lambda c: (log_entries.pruned(c), log_entries.head(c)))
        async for results in self._in_ranges(first, last, entries_by):
            yield [{"at": utc_text(at), "action": kind} for at, kind in results]

    async def _in_ranges(
        self, first: int, last: int, look: Callable[[Connection, int, int, int], list[T]]
    ) -> AsyncIterator[list[T]]:
        """Yield the results of `look` for ranges of messages or log entries, which it scans."""
        for after in range(first, last, RANGE):
            yield await self._read(partial(_look, look, self._user_id, after))

    async def _read(self, look: Callable[[Connection], T]) -> T:
        began = time.monotonic()
        result = await self._node.store.read(look)
        await asyncio.sleep(min(time.monotonic() - began, MAX_PAUSE))
        return result

    # Conversations

    def _linked(self, message: LinkedMessage) -> dict[str, Any]:
        return {"message_id": message.id, **self._conversation(message)}

    def _conversation(self, message: Message | LinkedMessage) -> dict[str, Any]:
        """Return the conversation's name, if the person can see it, and a link."""
        state, user = self._node.state, self._node.state.users[self._user_id]
        if message.direct_id is not None:
            members = state.directs[message.direct_id].members
            names = [self._person(member_id) for member_id in members if member_id != user.id]
            link = addresses.direct_message_address(members, message.id)
            return {"direct_message_with": names, "link": self._site + link}
        channel_id = int(message.channel_id or 0)
        place = MessagePlace(id=message.id, channel_id=channel_id)
        if not channel_access.reads_message(state, user, place):
            return {"channel": self._channel(channel_id)}
        channel, topic = state.channels[channel_id], message.topic or ""
        link = addresses.message_address(channel, topic, message.id)
        return {"channel": channel.name, "topic": topic, "link": self._site + link}

    @property
    def _site(self) -> str:
        return self._node.config.external_url.rstrip("/")

    def _channel(self, channel_id: int) -> str | None:
        state = self._node.state
        channel, user = state.channels.get(channel_id), state.users[self._user_id]
        if channel is None or not channel_access.sees_channel(state, user, channel):
            return None
        return channel.name

    def _reads(self, channel_id: int) -> bool:
        state = self._node.state
        channel, user = state.channels.get(channel_id), state.users[self._user_id]
        return channel is not None and channel_access.reads_channel(state, user, channel)

    def _person(self, user_id: int) -> str:
        state = self._node.state
        other, user = state.users[user_id], state.users[self._user_id]
        return other.full_name if permissions.sees_user(state, user, other) else f"User {user_id}"

    # Files

    async def _write_files(self) -> None:
        node = self._node
        names = avatar_paths(node.state.users[self._user_id].avatar_file)
        for path in names[-1:]:
            await self._archive.copy(node.files, path, "avatar.png")
        for attachment in list(node.state.uploads.of_user[self._user_id]):
            stored_file = await node.uploads.found(attachment.path)
            if stored_file is not None:
                name = f"files/{attachment.id}-{name_in_path(attachment.name)}"
                await self._archive.copy(stored_file.files, stored_file.path, name)


def _look(
    look: Callable[[Connection, int, int, int], list[T]],
    user_id: int,
    after: int,
    connection: Connection,
) -> list[T]:
    return look(connection, user_id, after, after + RANGE)


async def _each(records: Iterable[dict[str, Any]]) -> AsyncIterator[Page]:
    yield list(records)


def _readable(record: Struct) -> dict[str, Any]:
    """Return a record's fields without secrets, with times as text."""
    result = {}
    for name in record.__struct_fields__:
        if _is_secret(name) or name in _DERIVED:
            continue
        value = getattr(record, name)
        if name.endswith(("_at", "_until")) or name == "since":
            value = utc_text(value) if isinstance(value, int | float) and value else None
        result[name] = _without_secrets(msgspec.to_builtins(value, enc_hook=str))
    return result


def _is_secret(name: str) -> bool:
    return name in SECRETS or name.endswith("_sealed")


def _without_secrets(value: Any) -> Any:
    match value:
        case dict():
            kept = {name: item for name, item in value.items() if not _is_secret(name)}
            return {name: _without_secrets(value) for name, value in kept.items()}
        case list():
            return [_without_secrets(item) for item in value]
        case _:
            return value


def _day(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()
