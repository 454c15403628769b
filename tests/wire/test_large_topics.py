"""Topics of any size: renaming takes constant work, and everything else happens in pieces with
turns for others in between."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from pyroaring import BitMap

from tertulia.delivery.encoder import Withdrawal
from tertulia.domain.messages import deleting as deleting_rules
from tertulia.domain.messages import move_effects, moving
from tertulia.jobs.due import topic_moves
from tertulia.log.log import Log
from tertulia.model import narrow
from tertulia.model.changes import AnyChange, MessagesMoved
from tertulia.model.edits import TopicMove
from tertulia.model.errors import Conflict
from tertulia.model.narrow import Scope, Term
from tertulia.model.user_topics import Visibility
from tertulia.service.messages import deleting, editing, preconditions
from tertulia.state.unread import UnreadIndex
from tertulia.store import bitmaps, consistency, log_entries, message_details, writing
from tertulia.store import editing as store_editing
from tertulia.store import store as store_module
from tertulia.store.database import Connection
from tertulia.store.narrow_sql import narrow_condition
from tertulia.store.writing import Batch
from tertulia.wire.api.messages.move_index import MoveIndex
from tests.support import Organization, until

CAPABLE = {"bulk_message_deletion": True}
QUIET = {"send_notification_to_new_thread": False, "send_notification_to_old_thread": False}


async def page(org: Organization, who: str, *terms: tuple[str, Any]) -> list[dict[str, Any]]:
    found = await org[who].get(
        "/messages",
        anchor="newest",
        num_before=1000,
        num_after=0,
        narrow=[{"operator": operator, "operand": operand} for operator, operand in terms],
    )
    messages: list[dict[str, Any]] = found.ok["messages"]
    return messages


async def history(org: Organization, message_id: int) -> list[tuple[str, str]]:
    """The changes of a message's topic, newest first."""
    message = (await org["ann"].get(f"/messages/{message_id}")).ok["message"]
    edits = message.get("edit_history", [])
    return [(one["prev_topic"], one["topic"]) for one in edits if "topic" in one]


async def send_messages(org: Organization, topic: str, count: int, to: str = "lounge") -> list[int]:
    return [await org["ann"].send(to, topic, f"number {one}") for one in range(count)]


async def move(org: Organization, message_id: int, **more: Any) -> None:
    values = {"propagate_mode": "change_all", **QUIET, **more}
    assert (await org["ann"].patch(f"/messages/{message_id}", **values)).ok


async def accepted_move(
    org: Organization, monkeypatch: pytest.MonkeyPatch, message_id: int, **more: Any
) -> TopicMove:
    """A move in pieces that was accepted and interrupted before its first piece."""
    with monkeypatch.context() as patch:

        async def interrupted(*_: Any) -> None:
            pass

        patch.setattr(editing, "finish_move", interrupted)
        await move(org, message_id, **more)
    *_, accepted = org.node.state.topic_moves
    return accepted


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a few messages."""
    for module in (moving, preconditions):
        monkeypatch.setattr(module, "BATCH", 4)
    monkeypatch.setattr(moving, "_LEAST_BATCH", 1)


def written_by_triggers(connection: Connection) -> None:
    """Count the rows written in these tables."""
    for table in ("messages", "message_edits", "message_flags"):
        count = f"INSERT INTO counted (row_of) VALUES ('{table}')"
        if connection.dialect.name == "sqlite":
            for event in ("INSERT", "UPDATE", "DELETE"):
                connection.run(
                    f"CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN {count}; END"
                )
            continue
        connection.run(
            f"CREATE FUNCTION count_{table}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {count}; RETURN NULL; END $$"
        )
        connection.run(
            f"CREATE TRIGGER counts AFTER INSERT OR UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION count_{table}()"
        )


async def test_renaming_a_topic_writes_no_row_per_message(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 30)
    ben = await org["ben"].register()
    connection = org.node.store.database.connect(readonly=False)
    connection.run("CREATE TABLE counted (row_of TEXT NOT NULL)")
    written_by_triggers(connection)
    await move(org, mids[3], topic="coffee")
    assert connection.query("SELECT row_of FROM counted") == []
    connection.close()
    (event,) = [one for one in await ben.events() if one["type"] == "update_message"]
    assert event["message_ids"] == mids
    assert (event["orig_subject"], event["subject"]) == ("tea", "coffee")
    found = await page(org, "ben", ("channel", "lounge"), ("topic", "Coffee"))
    assert [(one["id"], one["subject"]) for one in found] == [(mid, "coffee") for mid in mids]
    assert await page(org, "ben", ("channel", "lounge"), ("topic", "tea")) == []


async def test_a_message_shows_the_renames_of_its_topic_while_it_was_there(
    org: Organization,
) -> None:
    await org.channel("lounge", "ann")
    early, stays = await send_messages(org, "tea", 2)
    (other,) = await send_messages(org, "cake", 1)
    await move(org, early, topic="coffee")
    (late,) = await send_messages(org, "coffee", 1)
    await move(org, other, topic="coffee", propagate_mode="change_one")
    await move(org, stays, topic="water", propagate_mode="change_one")
    await move(org, late, topic="✔ coffee")
    assert await history(org, early) == [("coffee", "✔ coffee"), ("tea", "coffee")]
    assert await history(org, stays) == [("coffee", "water"), ("tea", "coffee")]
    assert await history(org, late) == [("coffee", "✔ coffee")]
    assert await history(org, other) == [("coffee", "✔ coffee"), ("cake", "coffee")]


async def test_a_message_loads_only_the_newest_renames_of_its_topic(org: Organization) -> None:
    """Otherwise each message on a page would load all of them."""
    await org.channel("lounge", "ann")
    old, *_ = await send_messages(org, "tea 0", 2)
    edited = await org["ann"].patch(f"/messages/{old}", content="edited")
    assert edited.ok
    count = message_details.MAX_RENAMES + 3
    for number in range(count):
        await move(org, old, topic=f"tea {number + 1}")
    (late,) = await send_messages(org, f"tea {count}", 1)
    names = [(f"tea {number}", f"tea {number + 1}") for number in reversed(range(count))]
    assert await history(org, old) == names[: message_details.MAX_RENAMES]
    assert await history(org, late) == []
    shown, *_ = await page(org, "ann", ("channel", "lounge"))
    assert len(shown["edit_history"]) == message_details.MAX_RENAMES + 1
    assert "prev_content" in shown["edit_history"][-1]
    whole = (await org["ann"].get(f"/messages/{old}/history")).ok["message_history"]
    assert len(whole) == count + 2


async def spellings(org: Organization, topic: str = "tea") -> list[str]:
    """Return the topic's name in its messages, and in the list of topics."""
    found = await page(org, "ben", ("channel", "lounge"), ("topic", topic))
    names = {one.key: one.name for one in org.node.state.topics}
    return [*(one["subject"] for one in found), names[topic]]


async def test_each_message_keeps_its_spelling_until_the_topic_is_renamed(
    org: Organization,
) -> None:
    await org.channel("lounge", "ann", "ben")
    first, second = await send_messages(org, "Tea", 2)
    (third,) = await send_messages(org, "tea", 1)
    assert await spellings(org) == ["Tea", "Tea", "tea", "tea"]
    await move(org, third, topic="TEA")
    assert await spellings(org) == ["TEA", "TEA", "TEA", "TEA"]
    await send_messages(org, "tea", 1)
    assert await spellings(org) == ["TEA", "TEA", "TEA", "tea", "tea"]
    # After the rename, although these messages existed before.
    await move(org, second, topic="tEA", propagate_mode="change_one")
    assert await spellings(org) == ["TEA", "tEA", "TEA", "tea", "tea"]
    cake, *_ = await send_messages(org, "cake", 2)
    await move(org, cake, topic="Tea", propagate_mode="change_one")
    assert await spellings(org) == ["TEA", "tEA", "TEA", "tea", "Tea", "Tea"]
    await move(org, second, topic="teA", propagate_mode="change_later")
    assert await spellings(org) == ["TEA", "teA", "teA", "teA", "teA", "teA"]
    assert await history(org, second) == [("tEA", "teA"), ("TEA", "tEA"), ("tea", "TEA")]
    assert await history(org, cake) == [("tEA", "teA"), ("cake", "Tea")]
    await move(org, first, topic="coffee")
    assert await spellings(org, "coffee") == ["coffee"] * 6
    await move(org, second, topic="Tea", propagate_mode="change_one")
    assert await spellings(org) == ["Tea", "Tea"]


async def test_a_later_rename_applies_to_older_messages_moved_in_after(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    (old, other) = await send_messages(org, "cake", 2)
    (mid,) = await send_messages(org, "tea", 1)
    await move(org, mid, topic="Tea")
    await move(org, old, topic="TEA", propagate_mode="change_one")
    assert await spellings(org) == ["TEA", "Tea", "Tea"]
    await move(org, mid, topic="coffee")
    await move(org, other, topic="Coffee", propagate_mode="change_one")
    assert await spellings(org, "coffee") == ["coffee", "Coffee", "coffee", "coffee"]


@pytest.mark.usefixtures("pieces")
async def test_a_large_topic_is_respelled_in_pieces(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    ben = await org["ben"].register(client_capabilities=CAPABLE)
    await move(org, mids[1], topic="Tea", propagate_mode="change_later")
    assert await spellings(org) == ["tea", *["Tea"] * 10]
    assert len(org.node.state.topic_moves) == 0
    events = [one for one in await ben.events() if one["type"] == "update_message"]
    assert [one["message_ids"] for one in events] == [mids[6:], mids[2:6], mids[1:2]]
    assert {(one["orig_subject"], one["subject"]) for one in events} == {("tea", "Tea")}
    later = {"topic": "TEA", "propagate_mode": "change_later"}
    accepted = await accepted_move(org, monkeypatch, mids[1], **later)
    piece = await preconditions.to_move_next(org.node.log, accepted)
    await org.node.log.submit(None, moving.move_batch, piece, org.node.renderer.render)
    assert await spellings(org) == ["tea", *["Tea"] * 5, *["TEA"] * 5]
    # All messages have the current name.
    await move(org, mids[0], topic="tEa")
    assert len(org.node.state.topic_moves) == 0
    assert await spellings(org) == ["tEa"] * 11


async def test_each_phrase_is_searched_in_content_and_topic(org: Organization) -> None:
    await org.channel("lounge", "ann")
    mid = await org["ann"].send("lounge", "green tea", "with lemon")
    other = await org["ann"].send("lounge", "coffee", "green cups")

    async def found(text: str) -> list[int]:
        return [one["id"] for one in await page(org, "ann", ("search", text))]

    async def lacking(text: str) -> list[int]:
        terms = [{"operator": "search", "operand": text, "negated": True}]
        channel = {"operator": "channel", "operand": "lounge"}
        reply = await org["ann"].get(
            *("/messages",), anchor="newest", num_before=9, num_after=0, narrow=[channel, *terms]
        )
        return [one["id"] for one in reply.ok["messages"]]

    assert await found("green") == [mid, other]
    assert await found('"green tea" lemon') == [mid]
    assert await found('"tea with"') == []
    await move(org, mid, topic="black tea")
    assert await found("green") == [other]
    assert await found("black lemon") == [mid]
    assert await lacking("black lemon") == [other]
    assert await lacking("green") == [mid]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("to", ["merged", "elsewhere", "later"])
async def test_a_large_move_is_made_in_pieces(
    org: Organization, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben")
    attic = await org.channel("attic", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    there = await send_messages(org, "coffee", 1)
    ben = await org["ben"].register(client_capabilities=CAPABLE)
    sizes: list[int] = []
    real = writing.write

    def write(connection: Connection, batch: Batch) -> None:
        sizes.append(writing.row_count(batch))
        real(connection, batch)

    monkeypatch.setattr(store_module, "write", write)
    targets: dict[str, dict[str, Any]] = {
        "merged": {"topic": "coffee"},
        "elsewhere": {"stream_id": attic},
        "later": {"topic": "milk", "propagate_mode": "change_later"},
    }
    moved = mids[1:] if to == "later" else mids
    await move(org, moved[0], **{**targets[to], "send_notification_to_new_thread": True})
    assert max(sizes) < 20, sizes
    events = [one for one in await ben.events() if one["type"] == "update_message"]
    assert len(events) == (2 if to == "elsewhere" else 3)
    assert sorted(mid for event in events for mid in event["message_ids"]) == moved
    assert all(event["message_id"] in event["message_ids"] for event in events)
    channel = "attic" if to == "elsewhere" else "lounge"
    topic = {"merged": "coffee", "elsewhere": "tea", "later": "milk"}[to]
    found = await page(org, "ben", ("channel", channel), ("topic", topic))
    *others, notice = found
    expected = sorted([*moved, *(there if to == "merged" else [])])
    assert [one["id"] for one in others] == expected
    assert ("9 messages were moved" if to == "later" else "This topic was moved") in notice[
        "content"
    ]
    assert len(org.node.state.topic_moves) == 0
    left = await page(org, "ben", ("channel", "lounge"), ("topic", "tea"))
    assert [one["id"] for one in left] == (mids[:1] if to == "later" else [])


@pytest.mark.usefixtures("pieces")
async def test_an_interrupted_move_is_completed(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a job, or by a repeated request, even if the topic was renamed in the meantime."""
    await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    await send_messages(org, "coffee", 1)
    for _ in range(2):
        await accepted_move(org, monkeypatch, mids[0], topic="coffee")
    assert len(org.node.state.topic_moves) == 1
    await move(org, mids[0], topic="✔ tea")
    job = topic_moves(org.node)
    await job.once()
    assert len(org.node.state.topic_moves) == 1
    await job.once()
    assert len(org.node.state.topic_moves) == 0
    assert len(await page(org, "ben", ("topic", "coffee"))) == 11


@pytest.mark.usefixtures("pieces")
async def test_settings_follow_a_topic_moved_in_pieces(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    attic = await org.channel("attic", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    muted = {"topic": "tea", "visibility_policy": 1}
    assert (await org["ben"].post("/user_topics", stream_id=lounge, **muted)).ok
    await move(org, mids[0], stream_id=attic)
    visibility = org.node.state.visibility
    assert visibility(org["ben"].user_id, attic, "tea") is Visibility.MUTED
    assert visibility(org["ben"].user_id, lounge, "tea") is Visibility.INHERIT


@pytest.mark.usefixtures("pieces")
async def test_a_topic_of_any_size_can_be_resolved(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    await send_messages(org, "✔ tea", 1)
    mids = await send_messages(org, "tea", 10)
    await move(org, mids[0], topic="✔ tea")
    *_, notice = await page(org, "ben", ("topic", "✔ tea"))
    assert "marked this topic as resolved" in notice["content"]


@pytest.mark.usefixtures("pieces")
async def test_a_move_that_cannot_be_completed_delays_no_other(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben")
    for topic in ("tea", "milk"):
        mids = await send_messages(org, topic, 10)
        await send_messages(org, f"more {topic}", 1)
        await accepted_move(org, monkeypatch, mids[0], topic=f"more {topic}")
    first, _ = [one.id for one in org.node.state.topic_moves]
    real = preconditions.to_move_next

    async def broken(log: Log, topic_move: TopicMove) -> moving.MoveBatch:
        if topic_move.id == first:
            raise RuntimeError("on purpose")
        return await real(log, topic_move)

    monkeypatch.setattr(preconditions, "to_move_next", broken)
    job = topic_moves(org.node)
    await job.once()
    await job.once()
    assert [one.id for one in org.node.state.topic_moves] == [first]
    assert job.set_aside.reasons().keys() == {str(first)}


def among_others(connection: Connection, channel: int | None = None) -> None:
    """Add messages in other topics, of this channel or of others, and update the database's
    statistics."""
    columns = "sender_id, sent_at, content, rendered, client, has_link, has_image, has_attachment"
    for number in range(1000, 101_000, 1000):
        connection.run(
            f"INSERT INTO messages (id, channel_id, topic_id, is_me, mentions_all, {columns})"
            f" SELECT id + {number}, {channel or number}, {number} + id, is_me, mentions_all,"
            f" {columns}"
            " FROM messages WHERE id < 1000"
        )
    if connection.dialect.name == "postgresql":
        connection.run("ANALYZE messages")


@pytest.mark.parametrize("terms", [("channel",), ("channel", "topic")])
async def test_a_page_of_a_channel_is_an_index_scan(
    org: Organization, terms: tuple[str, ...]
) -> None:
    """The reader's scope isn't repeated if it contains the whole channel."""
    channel = await org.channel("lounge", "ann")
    await send_messages(org, "tea", 3)
    connection = org.node.store.database.connect(readonly=False)
    # If the topic is most of its channel, both indexes are equally good.
    among_others(connection, channel if "topic" in terms else None)
    connection.close()
    scope = Scope(user_id=org["ann"].user_id, channel_ids=frozenset({channel}))
    conditions: dict[str, narrow.Condition] = {
        "channel": narrow.InChannels(frozenset({channel})),
        "topic": narrow.InTopic("tea"),
    }

    def plan(connection: Connection) -> str:
        explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
        sql, values = narrow_condition(connection, scope, [Term(conditions[t]) for t in terms])
        if connection.dialect.name == "postgresql":
            # With so few rows, the planner would prefer other plans.
            for plan_type in ("seqscan", "bitmapscan", "sort"):
                connection.run(f"SET LOCAL enable_{plan_type} = off")
        rows = connection.query(
            f"{explain} SELECT id FROM messages WHERE {sql} AND id < ? ORDER BY id DESC LIMIT 9",
            [*values, 1_000_000],
        )
        return "\n".join(str(row[-1]) for row in rows)

    found = await org.node.store.read(plan)
    index = "messages_by_topic" if "topic" in terms else "messages_by_channel"
    # How PostgreSQL finds the topic's ID among so few rows is a matter of its statistics.
    before, using, found = found.partition(index)
    assert using
    assert "Sort" not in before
    assert "Filter" not in found
    assert "Sort" not in found
    assert "TEMP B-TREE" not in found


async def test_a_large_topic_is_deleted_in_pieces_of_many_entries(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece takes the same statements for several entries as for one. Clients that get an event
    per message get as many with each entry as there are event IDs."""
    monkeypatch.setattr(deleting, "BATCH", 40)
    monkeypatch.setattr(deleting_rules, "_OF_ENTRY", 10)
    lounge = await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 90)
    (left,) = await send_messages(org, "coffee", 1)
    starred = [mids[0], mids[15], mids[89]]
    await org["ben"].post("/messages/flags", messages=starred, op="add", flag="starred")
    ben = await org["ben"].register(client_capabilities=CAPABLE)
    old = await org["ben"].register(client_capabilities={"bulk_message_deletion": False})
    removals: list[int] = []
    real = bitmaps.remove

    def take_out(connection: Connection, table: str, ids: Sequence[int]) -> None:
        removals.append(len(ids))
        real(connection, table, ids)

    monkeypatch.setattr(bitmaps, "remove", take_out)
    reply = await org["ann"].post(f"/streams/{lounge}/delete_topic", topic_name="tea")
    assert reply.ok["complete"] is True
    assert set(removals) == {40, 10}  # (On PostgreSQL, the same rows are requested twice.)
    events = [one for one in await ben.events() if one["type"] == "delete_message"]
    assert [one["message_ids"] for one in events] == [
        mids[begin : begin + 10] for begin in range(80, -1, -10)
    ]
    singly = [one for one in await old.events() if one["type"] == "delete_message"]
    assert sorted(one["message_id"] for one in singly) == mids
    assert await page(org, "ben", ("channel", "lounge"), ("topic", "tea")) == []
    assert org.node.state.channels[lounge].first_message_id == left
    assert [topic.name for topic in org.node.state.topics] == ["coffee"]
    assert await org.node.store.read(consistency.dangling) == []


async def test_the_content_of_deleted_messages_is_not_read(org: Organization) -> None:
    await org.channel("lounge", "ann")
    mids = await send_messages(org, "tea", 2)
    doomed = await preconditions.to_delete(org.node.log, mids)
    assert [one.id for one in doomed.messages] == mids
    assert {one.content + one.rendered for one in doomed.messages} == {""}


async def test_deleting_messages_without_recent_entries_scans_none(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    lounge = await org.channel("lounge", "ann")
    await send_messages(org, "tea", 3)
    org.node.delivery.recent.clear()
    await send_messages(org, "coffee", 3)
    looks: list[int] = []
    real = Withdrawal.revised

    def revised(self: Withdrawal, earlier: Any) -> Any:
        looks.append(1)
        return real(self, earlier)

    monkeypatch.setattr(Withdrawal, "revised", revised)
    path = f"/streams/{lounge}/delete_topic"
    assert (await org["ann"].post(path, topic_name="tea")).ok["complete"] is True
    assert not looks
    assert (await org["ann"].post(path, topic_name="coffee")).ok["complete"] is True
    assert looks


async def test_the_history_of_a_renamed_topic_is_stored_by_channel(org: Organization) -> None:
    """Not by message, because every piece of a deletion would add to it."""
    lounge = await org.channel("lounge", "ann")
    mids = await send_messages(org, "tea", 20)
    ann = await org["ann"].register(client_capabilities=CAPABLE)
    await move(org, mids[0], topic="coffee")
    path = f"/streams/{lounge}/delete_topic"
    assert (await org["ann"].post(path, topic_name="coffee")).ok["complete"] is True

    def known(changes: Iterable[AnyChange]) -> list[tuple[int | None, list[int]]]:
        (moved,) = [one for one in changes if isinstance(one, MessagesMoved)]
        return [(at, [*BitMap.deserialize(some)]) for at, some in moved.moved_on]

    assert known(one.entry.change for one in org.node.delivery.recent) == [(None, mids)]
    org.node.delivery.recent.clear()
    entries = await org.node.store.read(log_entries.entries, 0, 1000)
    assert known(one.change for one in entries) == [(None, mids)]
    gone = [one["message_ids"] for one in await ann.events() if one["type"] == "delete_message"]
    assert gone == [mids]


@pytest.mark.usefixtures("pieces")
async def test_messages_sent_in_the_meantime_do_not_delay_a_move(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    (there,) = await send_messages(org, "coffee", 1)
    reads: list[int] = []
    later: list[int] = []
    real = preconditions.to_move_next

    async def busy(log: Log, topic_move: TopicMove) -> moving.MoveBatch:
        piece = await real(log, topic_move)
        reads.append(len(piece.ids))
        later.append(await org["ben"].send("lounge", "Tea", "me too"))
        return piece

    monkeypatch.setattr(preconditions, "to_move_next", busy)
    await move(org, mids[0], topic="coffee")
    assert reads == [4, 4, 2]
    left = await page(org, "ben", ("channel", "lounge"), ("topic", "tea"))
    assert [one["id"] for one in left] == later
    moved = await page(org, "ben", ("channel", "lounge"), ("topic", "coffee"))
    assert [one["id"] for one in moved] == sorted([*mids, there])
    topics = {one.key: one for one in org.node.state.topics}
    assert (topics["tea"].message_count, topics["tea"].last_message_id) == (3, later[-1])
    assert (topics["tea"].name, topics["coffee"].message_count) == ("Tea", 11)


@pytest.mark.usefixtures("pieces")
async def test_repeated_requests_to_move_a_topic_are_one_move(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    (there,) = await send_messages(org, "coffee", 1)
    reads: list[int] = []
    real = preconditions.to_move_next

    async def counted(log: Log, topic_move: TopicMove) -> moving.MoveBatch:
        piece = await real(log, topic_move)
        reads.append(len(piece.ids))
        if len(reads) == 3:  # With so few messages left, one piece would be enough.
            repeated = asyncio.create_task(move(org, mids[0], topic="coffee"))
            await until(lambda: len(flights) > 4)
            repeats.append(repeated)
        return piece

    repeats: list[asyncio.Task[None]] = []
    flights: list[int | None] = []
    real_finish = editing.finish_move

    async def finish(node: Any, move_id: int) -> None:
        flights.append(move_id)
        await real_finish(node, move_id)

    monkeypatch.setattr(preconditions, "to_move_next", counted)
    monkeypatch.setattr(editing, "finish_move", finish)
    loud = {"send_notification_to_new_thread": True}
    await asyncio.gather(*(move(org, mids[0], topic="coffee", **loud) for _ in range(4)))
    await asyncio.gather(*repeats)
    assert reads == [4, 4, 2]
    assert len(set(flights)) == 1
    found = await page(org, "ben", ("channel", "lounge"), ("topic", "coffee"))
    *others, notice = [one["id"] for one in found]
    assert others == sorted([*mids, there])
    assert "This topic was moved" in found[-1]["content"]
    assert notice > there


@pytest.mark.usefixtures("pieces")
async def test_an_accepted_move_that_is_delayed_is_no_error(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job completes it."""
    await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    await send_messages(org, "coffee", 1)
    with monkeypatch.context() as patch:

        async def conflicting(*_: Any) -> moving.MoveBatch:
            raise Conflict

        patch.setattr(preconditions, "to_move_next", conflicting)
        await move(org, mids[0], topic="coffee")
    assert len(org.node.state.topic_moves) == 1
    job = topic_moves(org.node)
    await job.once()
    await job.once()
    assert len(org.node.state.topic_moves) == 0
    assert len(await page(org, "ben", ("topic", "coffee"))) == 11


@pytest.mark.usefixtures("pieces")
async def test_the_newest_moved_messages_are_delivered_if_the_very_newest_was_deleted(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("den", "ann", is_private=True)
    lounge = await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 10, to="den")
    ben = await org["ben"].register()
    accepted = await accepted_move(org, monkeypatch, mids[0], stream_id=lounge)
    assert (await org["ann"].delete(f"/messages/{mids[-1]}")).ok
    await editing.finish_move(org.node, accepted.id)
    came = [one["message"]["id"] for one in await ben.events() if one["type"] == "message"]
    assert came == mids[1:9]


@pytest.mark.usefixtures("pieces")
async def test_a_move_to_the_current_name_of_the_whole_topic_is_complete(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben")
    mids = await send_messages(org, "tea", 10)
    later = {"topic": "coffee", "propagate_mode": "change_later"}
    accepted = await accepted_move(org, monkeypatch, mids[1], **later)
    await move(org, mids[0], topic="Coffee")
    assert len(org.node.state.topic_moves) == 0
    await editing.finish_move(org.node, accepted.id)
    assert await history(org, mids[5]) == [("tea", "Coffee")]
    assert await spellings(org, "coffee") == ["Coffee"] * 11


async def test_histories_of_messages_moved_together_are_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_editing, "KEPT_EDITS", 4)
    monkeypatch.setattr(store_editing, "MAX_MERGED", 2)
    await org.channel("lounge", "ann")
    for topic in ("coffee", "tea"):
        await send_messages(org, topic, 1)
    mids = await send_messages(org, "tea", 8)
    merges: list[int] = []
    real = store_editing._merge_oldest_edits

    def merge(connection: Connection, message_id: int) -> None:
        merges.append(message_id)
        real(connection, message_id)

    monkeypatch.setattr(store_editing, "_merge_oldest_edits", merge)

    def longest(connection: Connection) -> int:
        ((found,),) = connection.query(
            "SELECT MAX(count) FROM (SELECT COUNT(*) AS count FROM message_edits"
            " GROUP BY message_id) AS counts"
        )
        return int(found)

    first, lengths = mids[0], list[int]()
    for number in range(24):
        merges.clear()
        topic = "coffee" if number % 2 == 0 else "tea"
        await move(org, first, topic=topic, propagate_mode="change_later")
        lengths.append(await org.node.store.read(longest))
        assert len(merges) <= 2
    assert max(lengths) <= 4 + len(mids) // 2 + 2


@pytest.mark.usefixtures("pieces")
async def test_messages_leave_a_topic_that_was_renamed_often_a_few_at_a_time(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is written with the topic's renames."""
    await org.channel("lounge", "ann")
    await send_messages(org, "coffee", 1)
    mids = await send_messages(org, "tea 0", 4)
    renames = 12
    for number in range(renames):
        await move(org, mids[0], topic=f"tea {number + 1}")
    moved: list[int] = []
    real = move_effects.move_change

    def move_change(*arguments: Any) -> MessagesMoved:
        change = real(*arguments)
        moved.append(len(change.message_ids))
        return change

    monkeypatch.setattr("tertulia.domain.messages.moving.move_change", move_change)
    await move(org, mids[0], topic="coffee")
    assert moved == [1, 1, 1, 1]
    for mid in mids:
        assert (await history(org, mid))[:2] == [
            (f"tea {renames}", "coffee"),
            (f"tea {renames - 1}", f"tea {renames}"),
        ]


async def test_the_stored_renames_lead_from_the_first_name_to_the_last(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_editing, "KEPT_EDITS", 4)
    await org.channel("lounge", "ann")
    (mid,) = await send_messages(org, "tea 0", 1)
    for number in range(9):
        await move(org, mid, topic=f"tea {number + 1}")
    assert await history(org, mid) == [
        ("tea 8", "tea 9"),
        ("tea 7", "tea 8"),
        ("tea 6", "tea 7"),
        ("tea 0", "tea 6"),
    ]


async def test_views_of_a_renamed_topic_share_its_list_of_messages(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    mids = await send_messages(org, "tea", 5)
    listeners = [
        await org[who].register(client_capabilities=CAPABLE | {"empty_topic_name": empty})
        for who in ("ben", "cleo")
        for empty in (True, False)
    ]
    lists: dict[int, list[int]] = {}
    real = MoveIndex.listed

    def listed(self: Any, shown: Any) -> list[int]:
        found = real(self, shown)
        lists[id(found)] = found
        return found

    monkeypatch.setattr(MoveIndex, "listed", listed)
    await move(org, mids[0], topic="coffee")
    for one in listeners:
        (event,) = [e for e in await one.events() if e["type"] == "update_message"]
        assert event["message_ids"] == mids
    assert [*lists.values()] == [mids]


@pytest.mark.usefixtures("pieces")
async def test_equal_rows_are_computed_once(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = ("ann", "ben", "cleo")
    await org.channel("lounge", *people)
    mids = await send_messages(org, "tea", 10)
    attic = await org.channel("attic", *people)
    rows: list[bytes | None] = []
    real = bitmaps._marked

    def marked(*arguments: Any) -> bytes | None:
        rows.append(real(*arguments))
        return rows[-1]

    monkeypatch.setattr(bitmaps, "_marked", marked)
    await move(org, mids[0], stream_id=attic)
    unread = (await org["ben"].register()).data["unread_msgs"]["streams"]
    assert [one["unread_message_ids"] for one in unread] == [mids]
    # Not per person. (On PostgreSQL, the same rows are requested twice.)
    times = 2 if org.node.store.database.dialect.name == "postgresql" else 1
    assert len(rows) == times * len(set(rows))


async def test_what_a_move_changes_for_many_people_is_folded_once(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("dora", "emil"):
        await org.add(who)
    await org.channel("lounge", "ann", "ben", "cleo")
    attic = await org.channel("attic", "ann", "dora", "emil", is_private=True)
    mids = await send_messages(org, "tea", 3)
    calls: list[tuple[str, tuple[int, ...]]] = []

    def counted(name: str) -> None:
        real = getattr(UnreadIndex, name)

        def count(self: UnreadIndex, user_ids: tuple[int, ...], *more: Any, **named: Any) -> None:
            calls.append((name, tuple(user_ids)))
            real(self, user_ids, *more, **named)

        monkeypatch.setattr(UnreadIndex, name, count)

    for name in ("forget", "mark", "flag"):
        counted(name)
    await move(org, mids[0], stream_id=attic)
    ben, cleo, dora, emil = (org[who].user_id for who in ("ben", "cleo", "dora", "emil"))
    assert calls == [("forget", (ben, cleo)), ("mark", (dora, emil))]
    unread = (await org["dora"].register()).data["unread_msgs"]["streams"]
    assert unread == []
