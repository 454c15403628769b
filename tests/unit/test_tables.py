"""Records in memory: IDs that are never reused, and groups."""

import random
import tracemalloc
from collections.abc import Hashable

import pytest
from msgspec import Struct

from tertulia.model import nouns
from tertulia.model.nouns import Noun
from tertulia.service.config import Config
from tertulia.state import messages
from tertulia.state import state as organization
from tertulia.state.state import State
from tertulia.state.tables import Grouped, Ordered, PairRows, Table
from tertulia.store import migrations
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.schema_upgrade import migrate
from tertulia.store.store import database_at


class Note(Struct, frozen=True):
    id: int
    owner: int


NOTES = Noun("notes", Note, ("id",), removable=True)


class NoteTable(Table[Note]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_owner = Grouped(self, lambda note: note.owner or None)


def test_the_id_of_a_deleted_record_is_not_reused_even_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(organization, "NOUNS", (*nouns.NOUNS, NOTES))
    state = State()
    notes = state.tables["notes"]
    notes.put(Note(1, 7))
    notes.put(Note(2, 7))
    notes.remove(2)
    assert notes.next_id() == 3
    records = {name: list(table) for name, table in state.tables.items()}
    assert State.load(0, records).tables["notes"].next_id() == 3
    notes.remove(1)
    records = {name: list(table) for name, table in state.tables.items()}
    assert State.load(0, records).tables["notes"].next_id() == 3


def test_remaining_records_do_not_hide_deleted_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(organization, "NOUNS", (*nouns.NOUNS, NOTES))
    state = State()
    notes = state.tables["notes"]
    notes.put(Note(1, 7))
    notes.put(Note(2, 7))
    notes.remove(2)
    records = {name: list(table) for name, table in state.tables.items()}
    loaded = State.load(0, records)
    assert loaded.tables["notes"].next_id() == 3
    assert loaded.counters["notes"].last == 2
    assert loaded.take_dirty() == {}


class Alarm(Struct, frozen=True):
    id: int
    at: float | None


def test_records_are_ordered_by_key() -> None:
    table: Table[Alarm] = Table(Noun("alarms", Alarm, ("id",), removable=True))
    alarms = Ordered(table, lambda alarm: alarm.at)
    rng = random.Random(3)
    assert alarms.first is None
    for _ in range(300):
        at = rng.choice([None, *range(9)])
        table.put(Alarm(rng.randint(1, 20), at))
        if rng.random() < 0.3:
            table.remove(rng.choice(list(table.rows)))
        ordered = sorted((a.at, a.id) for a in table if a.at is not None)
        assert (alarms.first and (alarms.first.at, alarms.first.id)) == (
            ordered[0] if ordered else None
        )


def test_records_are_grouped_by_key() -> None:
    notes: Table[Note] = Table(NOTES)
    of = Grouped(notes, lambda note: note.owner)
    for note in (Note(2, 7), Note(1, 7), Note(3, 8)):
        notes.put(note)
    assert [note.id for note in of[7]] == [1, 2]
    notes.put(Note(1, 8))
    notes.remove(3)
    assert [note.id for note in of[7]] == [2]
    assert [note.id for note in of[8]] == [1]
    notes.remove(1)
    assert (list(of[8]), of.count(8), of.count(7)) == ([], 0, 1)


def test_groups_of_any_size_are_as_a_filter_finds_them() -> None:
    rng = random.Random(4)
    notes = NoteTable(NOTES)

    def require_equal(table: NoteTable) -> None:
        assert set(table.of_owner) == {note.owner for note in table if note.owner}
        for owner in range(5):
            expected = sorted(note.id for note in table if note.owner == owner and owner)
            assert [note.id for note in table.of_owner[owner]] == expected
            assert table.of_owner.keys(owner) == set(expected)
            assert table.of_owner.count(owner) == len(expected)

    for _ in range(500):
        note = Note(rng.randint(1, 8), rng.randrange(5))
        require_equal(notes.with_records([note]))
        require_equal(notes)
        notes.put(note)
        if rng.random() < 0.4:
            notes.remove(rng.choice(list(notes.rows)))
        require_equal(notes)


def test_a_counter_from_before_names_continues(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.data_path.mkdir(parents=True, exist_ok=True)
    database = database_at(config.data_path, config.database_url)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", MIGRATIONS[:2])
        migrate(database, lambda _: None)
    connection = database.connect(readonly=False)
    connection.run("""INSERT INTO counters (id, doc) VALUES (1, '{"last_message_id":41}')""")
    migrate(database, lambda _: None)
    (row,) = connection.query("SELECT name, doc FROM counters")
    assert row == ("messages", '{"name":"messages","last":41}')
    connection.close()


def test_recent_writes_are_limited_by_their_size_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "MAX_WRITE_BYTES", 200_000)
    items: list[tuple[Hashable, ...]] = [
        tuple(range(1_000_000, 1_003_000)),
        tuple((number, "💬" * 60 + str(number), None) for number in range(1_000_000, 1_003_000)),
    ]
    numbers: list[int] = []
    for some in items:
        tracemalloc.start()
        writes = messages.RecentWrites()
        for seq, item in enumerate(some, start=1):
            writes.note((item,), seq)
            writes.note((item,), seq)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        numbers.append(len(some) - writes.floor)
        assert len(writes.after(writes.floor) or ()) == numbers[-1]
        assert used < 300_000
        # Whatever was forgotten may have been written.
        assert writes.since(writes.floor - 1, ["another"])
        assert writes.after(writes.floor - 1) is None
        assert not writes.since(writes.floor, some[: writes.floor])
        assert writes.since(writes.floor, some[-1:])
    assert numbers[0] > 2 * numbers[1]


def test_rows_with_keys_of_two_fields_are_a_mapping() -> None:
    rng = random.Random(1)
    rows: PairRows[Note] = PairRows()
    expected: dict[tuple[int, int], Note] = {}
    for n in range(3000):
        key = rng.randrange(6), rng.randrange(6)
        if rng.random() < 0.5:
            rows[key] = expected[key] = Note(n, 0)
        else:
            assert rows.pop(key, None) == expected.pop(key, None)
        assert rows == expected
        assert {first for first, _ in expected} == rows.groups.keys()
        assert (key in rows, rows.get(key)) == (key in expected, expected.get(key))
        assert len(rows.groups[key[0]]) == sum(first == key[0] for first, _ in expected)


def test_a_copy_of_rows_with_keys_of_two_fields_leaves_the_original_alone() -> None:
    rows: PairRows[Note] = PairRows()
    rows.update({(1, 1): Note(1, 0), (2, 2): Note(2, 0)})
    copied = rows.with_records({(1, 2): Note(3, 0), (3, 3): Note(4, 0)})
    assert dict(rows) == {(1, 1): Note(1, 0), (2, 2): Note(2, 0)}
    assert dict(copied) == {**rows, (1, 2): Note(3, 0), (3, 3): Note(4, 0)}
    assert copied.groups[2] is rows.groups[2]
