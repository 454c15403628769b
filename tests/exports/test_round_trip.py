"""An organization with a random history stays the same after it was exported and imported,
except for the losses that `tertulia.exports.losses` declares. After restoring a backup, nothing
differs."""

import asyncio
import io
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from msgspec import Struct
from msgspec.structs import replace
from PIL import Image

from tertulia.app.founding import opened_log, opened_vault
from tertulia.exports.exporting import READ
from tertulia.exports.losses import LOSSES
from tertulia.imports.importer import Importer
from tertulia.imports.target import ImportTarget
from tertulia.imports.zulip.source import ZulipExport
from tertulia.log.log import Log
from tertulia.model.attachments import Attachment
from tertulia.model.exports import ExportKind
from tertulia.model.messages import Flag, MessageEdit
from tertulia.model.nouns import NOUNS
from tertulia.service.config import Config
from tertulia.service.files import pictures
from tertulia.service.links import external_media
from tertulia.state.state import State
from tertulia.state.unread_bitmaps import Unread
from tertulia.store import bots, message_details, message_marks, queries, transfer
from tertulia.store.database import LONG, Connection
from tertulia.store.message_details import NO_DETAILS
from tertulia.store.store import database_at
from tertulia.store.uploads import UploadStore
from tests.exports.exporting import export_of
from tests.property.histories import History, on_a_new_database, same
from tests.property.test_state import both, examples, new_database, seeds
from tests.support import Organization

ROOT = Path(__file__).parents[2]
TABLES = {table for loss in LOSSES for table in loss.tables}
FIELDS = {field for loss in LOSSES for field in loss.fields}
NEWEST = re.compile(r"/with/[0-9]+")
EMBED = re.compile(r'\n<div class="message_embed">.*?</div></div></div>', re.DOTALL)

Facts = dict[tuple[Any, ...], Any]
"""An organization's data: values by table, key, and field."""


def flat(table: str, key: Any, record: Struct, path: str = "") -> Iterator[tuple[Any, Any]]:
    """Yield the fields of a record, including those of nested structs."""
    for name in record.__struct_fields__:
        value, place = getattr(record, name), f"{path}{name}"
        if f"{table}.{place}" in FIELDS:
            continue
        if isinstance(value, Struct):
            yield from flat(table, key, value, f"{place}.")
        else:
            yield (table, key, place), value


def records(state: State, messages: Collection[int]) -> Facts:
    """Return the records of the state. `messages` are the IDs of existing messages."""
    found: Facts = {}
    for table in state.tables.values():
        name = table.noun.table
        for record in () if name in TABLES else table:
            key = table.noun.key_of(record)
            match name:
                case "subscriptions" if (
                    not any(
                        after < one and (until is None or one <= until)
                        for after, until in record.spans
                        for one in messages
                    )
                    and not record.is_active
                ):
                    continue  # It had no message.
                case "subscriptions":
                    # Spans may begin and end with deleted messages: only `received` matters.
                    found[name, key, "is_active"] = record.is_active
                    record = replace(record, spans=())
                case "direct_conversations" if not record.last_message_id:
                    continue  # Its messages were deleted.
                case "direct_conversations":
                    key = record.members
                case "reminders" if record.message_id not in messages:
                    continue  # It was deleted.
                case "reminders":
                    key = (record.user_id, record.message_id, record.deliver_at, record.note)
                case "domains":  # Nothing refers to its ID.
                    key, record = record.name, replace(record, id=0)
                case "personal_settings" if key == 0:
                    continue
                case "users" if record.is_system_bot:
                    record = replace(record, joined_at=0)
                case "realm":
                    record = replace(record, uuid="")
            found.update(flat(name, key, record))
    found.update(flat("personal_settings", 0, state.default_settings))
    return found


def of_messages(connection: Connection, state: State, last_id: int) -> Facts:
    """Return the messages up to `last_id`, with their flags, reactions, and edits."""
    found: Facts = {}
    every = [one for page in queries.pages_of_messages(connection, 1000) for one in page]
    messages = [one for one in every if one.id <= last_id]
    ids = [one.id for one in messages]
    details = message_details.details_of(connection, ids)
    for message in messages:
        people = state.directs[message.direct_id].members if message.direct_id else ()
        found["messages", message.id, "people"] = people
        # A mention of everyone is compared by each person's flags.
        shown = replace(
            message, direct_id=None, rendered=html(message.rendered), mentions_all=False
        )
        found.update(flat("messages", message.id, shown))
        parts = details.get(message.id, NO_DETAILS)
        for table in ("reactions", "submessages", "edits"):
            for number, one in enumerate(sorted(getattr(parts, table), key=in_order)):
                if isinstance(one, MessageEdit):
                    one = replace(one, was_rendered=html(one.was_rendered or ""))
                found.update(flat(table, (message.id, number), one))
    for user in state.users:
        relations = message_marks.relations(connection, user.id, ids)
        received = found["received", user.id, ""] = []
        for message in messages:
            flags = relations[message.id].flags
            if state.received(user.id, message):
                received.append(message.id)
                if message.mentions_all:
                    flags |= Flag.CHANNEL_WILDCARD_MENTIONED
            if flags:
                found["flags", user.id, message.id] = flags
        if user.is_bot:
            found["storage", user.id, ""] = dict(bots.stored_values(connection, user.id, None))
    return {
        key: value
        for key, value in found.items()
        if key[0] == "messages" or key[2] not in {"seq", "id"}
    }


def in_order(part: Any) -> Any:
    return getattr(part, "seq", 0), getattr(part, "id", 0)


def html(rendered: str) -> str:
    """Return HTML without previews of pages, and without the ID of a topic's newest message at that
    time."""
    return EMBED.sub("", NEWEST.sub("", rendered))


async def of_files(config: Config, state: State) -> Facts:
    """Return the content of files, and the pixels of pictures."""
    files, disk = config.opened_files()
    uploads = UploadStore(files, disk)

    async def content(path: str) -> bytes:
        return b"".join([chunk async for chunk in files.chunks(path)])

    found: Facts = {}
    try:
        one: Attachment
        for one in state.attachments:
            found["files", one.path, ""] = await content(uploads.final_path(one.path))
        for user in state.users:
            if user.avatar_source == "U":
                place, _ = pictures.avatar_paths(user.avatar_file)
                found["avatars", user.id, ""] = pixels(await content(place))
        for emoji in state.custom_emoji:
            found["emoji", emoji.id, ""] = pixels(await content(pictures.emoji_path(emoji.file)))
    finally:
        await files.close()
    return found


def pixels(picture: bytes) -> tuple[Any, ...]:
    with Image.open(io.BytesIO(picture)) as image:
        return image.size, image.convert("RGBA").getpixel((0, 0))


async def unread_of(log: Log, user_id: int) -> Unread:
    return await log.snapshot(
        user_id, lambda _: None, lambda state, _: state.unread.of(state, user_id)
    )


async def of_organization(config: Config, log: Log, last_id: int) -> Facts:
    state = log.state

    def read() -> Facts:
        database = database_at(config.data_path, config.database_url)
        with closing(database.connect(readonly=True, limits=LONG)) as connection:
            return of_messages(connection, state, last_id)

    unread: Facts = {}
    for user in state.users:
        own = await unread_of(log, user.id)
        unread["unread", user.id, ""] = [one for one in own.all if one <= last_id]
        unread["unread mentions", user.id, ""] = [one for one in own.mentions if one <= last_id]
    messages = await asyncio.to_thread(read)
    return {
        **records(state, {key for table, key, _ in messages if table == "messages"}),
        **messages,
        **unread,
        **await of_files(config, state),
    }


def difference(before: Facts, after: Facts) -> Mapping[tuple[Any, ...], Any]:
    return {
        key: (before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


@both
@examples(6)
@given(seed=seeds)
def test_exported_and_imported_again_it_is_equal(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int
) -> None:
    with new_database(request, kind) as url, new_database(request, kind) as target:

        async def check(history: History, config: Config) -> None:
            await history.run(200)
            await history.org.tick()
            await compare(history, config, tmp_path_factory.mktemp("moved"), target)

        on_a_new_database(url, seed, check)


async def compare(history: History, config: Config, directory: Path, url: str) -> None:
    log = history.org.node.log
    await log.durability.settled()
    last_id = max((one.last_message_id for one in log.state.topics), default=0)
    last_id = max([last_id, *(one.last_message_id for one in log.state.directs)])
    before = await of_organization(config, log, last_id)
    await export_of(config, directory, ExportKind.FULL)
    file = directory / "full_without_consent.zulip.tar.gz"
    target = replace(config, data_dir=str(directory / "data"), database_url=url)
    source = await asyncio.to_thread(ZulipExport, file, directory / "work")
    vault = opened_vault(target, create=True)
    try:
        async with opened_log(target, lambda _: None, clock=history.clock) as moved:
            files, disk = target.opened_files()
            # With the same secret, images of other servers have the same URLs.
            media = external_media(config, history.org.node.links)
            importer = Importer(
                ImportTarget(moved, vault, files, disk, target.external_url, media),
                source,
                processes=1,
                is_followed=True,
            )
            progress = await importer.run()
            after = await of_organization(target, moved, last_id)
    finally:
        source.close()
        vault.close()
    assert progress.report.skipped == {}
    assert progress.origin.startswith("Tertulia ")
    found = difference(before, after)
    assert not found, "\n".join(f"{key}: {one!r:.300}" for key, one in found.items())


@both
@examples(2)
@given(seed=seeds)
def test_backed_up_and_restored_it_is_the_same(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int
) -> None:
    with new_database(request, kind) as url, new_database(request, kind) as target:

        async def check(history: History, config: Config) -> None:
            await history.run(100)
            directory = tmp_path_factory.mktemp("restored")
            await compare_restored(history, config, directory, target)

        on_a_new_database(url, seed, check)


async def compare_restored(history: History, config: Config, directory: Path, url: str) -> None:
    log = history.org.node.log
    await log.durability.settled()
    last_id = log.state.last_message_id
    target = replace(config, data_dir=str(directory / "data"), database_url=url)

    target.data_path.mkdir()

    def restore() -> None:
        file = directory / "backup.zip"
        database = database_at(config.data_path, config.database_url)
        with closing(database.connect(readonly=True, limits=LONG)) as connection:
            transfer.back_up(
                connection,
                *config.opened_files(),
                file,
                with_files=True,
                secret="not compared",
                created_at=0,
                written_by="test",
                progress=lambda *_: None,
            )
        with closing(transfer.Backup(file)) as backup:
            transfer.restore(
                database_at(target.data_path, target.database_url),
                *target.opened_files(),
                backup,
                lambda _: None,
                lambda *_: None,
            )

    await asyncio.to_thread(restore)
    async with opened_log(target, lambda _: None, clock=history.clock) as restored:
        same(log.state, restored.state)
        before = await of_organization(config, log, last_id)
        assert difference(before, await of_organization(target, restored, last_id)) == {}


def test_the_documentation_lists_everything_that_is_lost() -> None:
    text = " ".join((ROOT / "docs" / "moving-out.md").read_text().split())
    assert [one.sentence for one in LOSSES if f"- {one.sentence}" not in text] == []
    tables = {noun.table for noun in NOUNS}
    assert tables == TABLES | READ, "every noun is exported, or declared as lost"
    known = tables | {"messages", "reactions"}
    assert {field.partition(".")[0] for field in FIELDS} <= known


@pytest.mark.anyio
async def test_the_report_says_what_this_organization_loses(
    org: Organization, tmp_path: Path
) -> None:
    ann = org["ann"]
    await org.channel("square", "ann")
    message_id = await ann.send("square", "t", "to pin")
    before = (await export_of(org.node.config, tmp_path, ExportKind.FULL)).result.lost
    assert any(one.startswith("passwords") for one in before)
    assert "pinned messages" not in before
    assert (await ann.post(f"/messages/{message_id}/pin")).ok
    (tmp_path / "full_without_consent.zulip.tar.gz").unlink()
    after = (await export_of(org.node.config, tmp_path, ExportKind.FULL)).result.lost
    assert set(after) - set(before) == {"pinned messages"}
