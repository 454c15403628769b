"""Pruning the start of the log up to a checkpoint, and erasing people."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tertulia.jobs import upkeep
from tertulia.jobs.upkeep import erased_once, erasures, pruned_once, words_forgotten_once
from tertulia.log import replica
from tertulia.model.changes import CredentialChanged, InvitationsMade
from tertulia.model.invitations import Invitation
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import log_entries, outbox, pruning, queries
from tertulia.store import store as store_module
from tertulia.store.database import Connection, Database
from tertulia.store.store import Store, database_at
from tests.emails import no_email_job
from tests.support import Organization, TestClock, new_organization, open_organization
from tests.wire.personal_data import later

FUTURE = 2**60
NAME, ADDRESS = "Zoë Secretname", "zoe.secret@example.com"


@pytest.fixture
async def quiet(config: Config, no_jobs: None) -> AsyncIterator[Organization]:
    async with new_organization(config) as org:
        yield org


async def wrong(org: Organization) -> list[tuple[str, int]]:
    return await org.node.store.read(replica.replay_differences)


async def test_a_pruned_log_is_checked_from_its_checkpoint(
    quiet: Organization,
) -> None:
    await quiet.channel("lounge", "ann")
    await quiet["ann"].send("lounge", "t", "before")
    await pruned_once(quiet.node.store, FUTURE)
    assert await quiet.node.store.read(log_entries.entries, 0, 10) == []
    await quiet["ann"].send("lounge", "t", "after")
    await quiet.channel("den", "ann")
    assert await wrong(quiet) == []
    await quiet.node.store.write(lambda c: c.run("DELETE FROM subscriptions"))
    ((table, count),) = await wrong(quiet)
    assert (table, count) == ("subscriptions", 2)


async def test_nothing_is_pruned_beyond_the_checkpoint_which_is_rarely_made(
    quiet: Organization,
) -> None:
    store = quiet.node.store
    await quiet.channel("lounge", "ann")
    head = quiet.node.state.seq
    await store.write(lambda c: c.run("UPDATE log SET at = 1 WHERE seq < ?", (head,)))
    await pruned_once(store, 2)
    assert await store.read(log_entries.pruned) == head - 1
    assert await store.read(pruning.checkpoint_at) == head
    await quiet.channel("den", "ann")
    await store.write(lambda c: c.run("UPDATE log SET at = 1 WHERE seq = ?", (head,)))
    await pruned_once(store, 2)
    assert await store.read(log_entries.pruned) == head
    assert await store.read(pruning.checkpoint_at) == head
    assert await wrong(quiet) == []


async def test_an_unfinished_checkpoint_does_not_count(
    quiet: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "ROWS", 3)
    store = quiet.node.store
    left = 30

    def goes_on() -> bool:
        nonlocal left
        left -= 1
        return left > 0

    pruning.make_checkpoint(store.database, goes_on)
    assert await store.read(pruning.checkpoint_at) == 0
    pruning.make_checkpoint(store.database)
    assert await store.read(pruning.checkpoint_at) == quiet.node.state.seq
    seq, records = await store.read(pruning.checkpoint)
    assert records == await store.read(queries.records)
    ((numbers,),) = await store.read(
        lambda c: c.query("SELECT COUNT(DISTINCT number) FROM checkpoints")
    )
    assert (seq, numbers) == (quiet.node.state.seq, 1)


async def test_concurrent_checkpoints_are_not_mixed(
    quiet: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "ROWS", 1)
    if quiet.node.store.is_shared:  # Other nodes are other processes.
        monkeypatch.setattr(pruning, "_making", threading.Semaphore(3))
    database = quiet.node.store.database
    await asyncio.gather(*(asyncio.to_thread(pruning.make_checkpoint, database) for _ in range(3)))
    _, records = await quiet.node.store.read(pruning.checkpoint)
    present = await quiet.node.store.read(queries.records)
    assert {table: sorted(map(repr, found)) for table, found in records.items()} == {
        table: sorted(map(repr, found)) for table, found in present.items()
    }


async def test_a_checkpoint_is_made_after_one_was_restored_with_a_backup(
    quiet: Organization,
) -> None:
    """Its rows have IDs that the database didn't generate."""
    store = quiet.node.store
    row = (1, 0, "users", "{}")
    await store.write(
        lambda c: c.run("INSERT INTO checkpoints (id, number, noun, doc) VALUES (?, ?, ?, ?)", row)
    )
    await pruned_once(store, FUTURE)
    assert await store.read(pruning.checkpoint_at) == quiet.node.state.seq
    assert await wrong(quiet) == []


async def test_a_checkpoint_is_canceled_when_the_node_stops(
    quiet: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def made(_: Database, goes_on: Callable[[], bool], *, until: int | None = None) -> None:
        begun.set()
        while goes_on():
            time.sleep(0.001)
        ended.set()

    monkeypatch.setattr(pruning, "make_checkpoint", made)
    task = asyncio.create_task(pruned_once(quiet.node.store, FUTURE))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    assert await asyncio.to_thread(ended.wait, 60)


async def test_upkeep_has_its_own_threads_which_do_not_delay_the_end_of_a_node(
    quiet: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "UPKEEP_CLOSING_SECONDS", 0.01)
    begun, answers = threading.Event(), threading.Event()
    threads: list[str] = []

    def hangs(_: Database, **__: Any) -> bool:
        threads.append(threading.current_thread().name)
        begun.set()
        answers.wait(60)
        return False

    config = quiet.node.config
    store = Store(database_at(config.data_path, config.database_url))
    monkeypatch.setattr(type(store.database), "forget_deleted_words", hangs)
    task = asyncio.create_task(words_forgotten_once(store))
    try:
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await store.close()
        assert not answers.is_set()
    finally:
        answers.set()
    assert threads == ["upkeep_0"]


@pytest.mark.usefixtures(no_email_job.__name__)
async def test_a_long_log_is_scanned_in_parts(
    quiet: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "ENTRIES_READ", 3)
    store = quiet.node.store
    user_id, first = await live(quiet), quiet.node.state.seq
    await erase(quiet, user_id)
    await quiet.channel("den", "ann")
    young = quiet.node.state.seq
    await store.write(lambda c: c.run("UPDATE log SET at = 1 WHERE seq < ?", (young,)))
    await erased_once(store)
    assert first < await store.read(log_entries.pruned) < young - 1
    await pruned_once(store, 2)
    assert await store.read(log_entries.pruned) == young - 1


async def test_people_can_work_while_a_checkpoint_is_made(quiet: Organization) -> None:
    await quiet.channel("lounge", "ann")
    making = asyncio.to_thread(pruning.make_checkpoint, quiet.node.store.database)
    sending = (quiet["ann"].send("lounge", f"topic {number}", "x") for number in range(20))
    await asyncio.gather(making, *sending)
    await pruned_once(quiet.node.store, FUTURE)
    assert await wrong(quiet) == []


async def test_a_log_pruned_by_an_earlier_version_is_reported(quiet: Organization) -> None:
    await quiet.node.store.write(lambda c: pruning.prune(c, 3, 10))
    with pytest.raises(ValueError, match="no checkpoint"):
        await wrong(quiet)


async def test_disk_space_is_freed(config: Config, quiet: Organization) -> None:
    if config.database_url:
        pytest.skip("PostgreSQL does it by itself")
    store, path = quiet.node.store, Path(config.data_dir) / "tertulia.db"
    filler = [(2**40 + number, 1.0, "x" * 5000) for number in range(2000)]
    await store.write(
        lambda c: c.run_many("INSERT INTO log (seq, at, change) VALUES (?, ?, ?)", filler)
    )
    await store.write(lambda c: c.run("PRAGMA wal_checkpoint") or None) if False else None
    await store.write(lambda c: c.run("DELETE FROM log WHERE seq >= ?", (2**40,)))
    while await asyncio.to_thread(store.database.give_back_space):
        pass

    def pages(connection: Connection) -> int:
        ((free,),) = connection.query("PRAGMA freelist_count")
        return int(free)

    assert await store.read(pages) == 0
    assert path.exists()


async def test_text_of_deleted_and_edited_messages_leaves_the_files(
    config: Config, quiet: Organization
) -> None:
    if config.database_url:
        pytest.skip("PostgreSQL overwrites nothing")
    ann, store = quiet["ann"], quiet.node.store
    await quiet.channel("lounge", "ann")
    deleted = await ann.send("lounge", "t", "the xqdeletedword " * 400)
    edited = await ann.send("lounge", "t", "the xqeditedword")
    kept = await ann.send("lounge", "t", "the xqkeptword")
    for number in range(20):
        await ann.send("lounge", "t", f"filler {number}")
    await ann.delete(f"/messages/{deleted}")
    await ann.patch(f"/messages/{edited}", content="another")
    await ann.delete(f"/messages/{edited}")
    await ann.delete(f"/messages/{await ann.send('lounge', 'the xqdeletedtopic', 'x')}")
    assert await words_forgotten_once(store)

    path = Path(config.data_dir) / "tertulia.db"
    files = [path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))]
    found = b"".join(file.read_bytes() for file in files).lower()
    words = (b"xqkeptword", b"xqdeletedword", b"xqeditedword")
    assert [word for word in words if word in found] == [b"xqkeptword"]
    # (The log has topic names until it's pruned.)
    blocks = await store.read(lambda c: c.query("SELECT block FROM topic_search_data"))
    assert b"xqdeletedtopic" not in b"".join(block for (block,) in blocks)
    await store.write(
        lambda c: c.run("INSERT INTO message_search (message_search) VALUES ('integrity-check')")
    )
    narrow = [{"operator": "search", "operand": "xqkeptword"}]
    reply = await ann.get("/messages", anchor="newest", num_before=9, num_after=0, narrow=narrow)
    assert [one["id"] for one in reply.ok["messages"]] == [kept]


async def test_readers_delay_emptying_the_write_ahead_log(
    config: Config, quiet: Organization
) -> None:
    if config.database_url:
        pytest.skip("PostgreSQL has its own rules")
    store = quiet.node.store
    reader = store.database.connect(readonly=True)
    reader.run(reader.dialect.begin_read)
    reader.query("SELECT COUNT(*) FROM messages")
    await quiet.channel("lounge", "ann")
    await quiet["ann"].send("lounge", "t", "x")
    assert not await words_forgotten_once(store)
    reader.run("ROLLBACK")
    reader.close()
    assert await words_forgotten_once(store)


# Erasure


def everything(connection: Connection) -> str:
    """The content of all tables."""
    dialect = connection.dialect
    rows: list[Any] = []
    for (table,) in connection.query(dialect.tables):
        rows += connection.query(f"SELECT * FROM {table}")
    return repr(rows)


async def live(org: Organization) -> int:
    """Zoë joins and does many things. Returns her ID."""
    ann = org["ann"]
    invitation = Invitation(
        id=1,
        inviter_id=ann.user_id,
        address=ADDRESS,
        created_at=1,
        nonce="n",
        role=Role.MEMBER,
    )
    await org.do(InvitationsMade(invitations=(invitation,)))
    zoe = await org.add("zoe")
    kept = {"content": "zoes own words", "title": "zoes title"}
    assert (await zoe.post("/saved_snippets", **kept)).ok
    draft = {"type": "", "to": [], "topic": "", "content": "zoes draft", "timestamp": 1}
    assert (await zoe.post("/drafts", drafts=[draft])).ok
    waiting = {"type": "direct", "to": [ann.user_id], "content": "zoes plan"}
    assert (
        await zoe.post("/scheduled_messages", **waiting, scheduled_delivery_timestamp=later(org))
    ).ok
    assert (await zoe.post("/users/me/alert_words", alert_words=["zoesword"])).ok
    for change in ({"full_name": NAME}, {"new_email": ADDRESS}):
        assert (await ann.patch(f"/users/{zoe.user_id}", **change)).ok
    return zoe.user_id


@pytest.mark.usefixtures(no_email_job.__name__)
async def test_nothing_of_an_erased_person_is_left_in_the_database(
    config: Config, quiet: Organization
) -> None:
    store = quiet.node.store
    user_id = await live(quiet)
    hashed = "$argon2id$zoes-hash"
    credential = quiet.node.state.credentials[user_id]
    protected = msgspec.structs.replace(credential, password_hash=hashed)
    await quiet.do(CredentialChanged(credential=protected, same_key=True))
    copy = Path(config.data_dir) / "tertulia.db.before-migration-from-3"
    copy.write_text(NAME)

    def mailed(_: CommandContext) -> Decision[None]:
        mail = Mail(kind=MailKind.HAS_ACCOUNT, to=ADDRESS.upper(), site="http://chat.test")
        return Decision(None, (), (mail,))

    await quiet.node.log.submit(None, mailed)
    assert ADDRESS in await store.read(everything)
    await erase(quiet, user_id)
    await erased_once(store)
    left = await store.read(everything)
    for trace in (NAME, ADDRESS, ADDRESS.upper(), "zoe@", hashed, "zoes", "zoesword"):
        assert trace not in left
    if not config.database_url:
        assert not copy.exists()
    assert await store.read(outbox.queued) == []
    assert await wrong(quiet) == []
    assert (
        (await quiet["ann"].get(f"/users/{user_id}")).ok["user"]["full_name"].startswith("Deleted")
    )


async def erase(org: Organization, user_id: int) -> None:
    reply = await org["ann"].delete(f"/users/{user_id}", actions={"delete_profile": True})
    assert reply.ok


@pytest.mark.usefixtures(no_email_job.__name__)
async def test_an_erasure_runs_by_itself_even_after_a_restart(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "PROPAGATION_SECONDS", 0.0)
    monkeypatch.setattr("tertulia.jobs.registry.erasures", lambda log, _: erasures(log, 0.0))
    with monkeypatch.context() as patch:
        patch.setattr("tertulia.app.composition.jobs_of", lambda *_: ())
        async with new_organization(config) as org:
            await erase(org, await live(org))
    async with open_organization(config) as org:
        async with asyncio.timeout(60):
            while NAME in await org.node.store.read(everything):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.mark.usefixtures("no_jobs")
async def test_clients_and_other_nodes_are_notified_before_the_erasure(config: Config) -> None:
    """So that a node which starts in the meantime can continue their queues."""
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        job = erasures(org.node.log, 30.0)
        await job.once()
        listener = await org["ann"].register(event_types=["message"])
        await erase(org, await live(org))
        assert 0 < await job.once() <= upkeep.PROPAGATION_SECONDS
    async with open_organization(config, clock=clock) as org:
        job = erasures(org.node.log, 30.0)
        clock.ahead -= 1000
        assert 0 < await job.once() <= upkeep.PROPAGATION_SECONDS, (
            "from the start, by whatever clock"
        )
        listener.person = org["ann"]
        assert await listener.events() == []
        assert NAME in await org.node.store.read(everything)
        # An erasure requested in the meantime has its own time, and doesn't delay the first.
        clock.ahead += upkeep.PROPAGATION_SECONDS - 10
        other = await org.add("other")
        assert (await other.patch("/settings", full_name="Otto Othername")).ok
        await erase(org, other.user_id)
        await job.once()
        assert NAME in await org.node.store.read(everything)
        for name in (NAME, "Otto Othername"):
            assert name in await org.node.store.read(everything)
            clock.ahead += upkeep.PROPAGATION_SECONDS - 10
            await job.once()
            assert name not in await org.node.store.read(everything)


@pytest.mark.usefixtures("no_jobs")
async def test_a_server_that_never_runs_for_a_minute_erases_too(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await erasures(org.node.log, 30.0).once()
        assert await org.node.store.read(pruning.wait) is None  # Nothing to wait for.
        await erase(org, await live(org))
    for _ in range(4):
        clock.ahead += upkeep.PROPAGATION_SECONDS * 0.7
        async with open_organization(config, clock=clock) as org:
            assert 0 < await erasures(org.node.log, 30.0).once() <= upkeep.PRUNING_PERIOD_SECONDS
            left = await org.node.store.read(everything)
    assert NAME not in left


# What people delete themselves


async def test_the_log_has_no_copy_of_personal_data(
    quiet: Organization,
) -> None:
    await live(quiet)

    def log(connection: Connection) -> str:
        return repr(connection.query("SELECT change FROM log"))

    text = await quiet.node.store.read(log)
    for own in ("zoes own words", "zoes title", "zoes draft", "zoes plan"):
        assert own not in text
    assert await wrong(quiet) == []


async def test_a_client_that_was_away_gets_the_current_content(config: Config) -> None:
    async with new_organization(config) as org:
        queue = await org["ann"].register()
        made = await org["ann"].post("/saved_snippets", title="one", content="first")
        path = f"/saved_snippets/{made.ok['saved_snippet_id']}"
        gone = await org["ann"].post("/saved_snippets", title="two", content="to be gone")
        assert (await org["ann"].delete(f"/saved_snippets/{gone.ok['saved_snippet_id']}")).ok
        assert (await org["ann"].patch(path, content="second")).ok
    async with open_organization(config) as org:
        later_queue = type(queue)(org["ann"], queue.queue_id, queue.last_event_id, {})
        events = [e for e in await later_queue.events() if e["type"] == "saved_snippets"]
        assert [e["op"] for e in events] == ["add", "add", "remove", "update"]
        assert events[-1]["saved_snippet"]["content"] == "second"
        assert "to be gone" not in repr(events)
