"""Folding the log from its beginning, and comparing that with the tables."""

from tertulia.model.nouns import NOUNS
from tertulia.state.fold import fold
from tertulia.state.organization import State
from tertulia.store import log_entries, pruning, queries
from tertulia.store.database import Connection

_PAGE = 1000


def replayed(connection: Connection) -> State:
    """The fold of the whole log; or, where its beginning was forgotten, of what came after the
    checkpoint. ValueError where there is none to begin from, or a gap."""
    state = State()
    if forgotten := log_entries.pruned(connection):
        seq, records = pruning.checkpoint(connection)
        if seq < forgotten:
            raise ValueError("the log's beginning was forgotten, and there is no checkpoint")
        state = State.load(seq, records)
    while page := log_entries.entries(connection, state.seq, _PAGE):
        for entry in page:
            fold(state, entry)
    return state


def differences(connection: Connection) -> list[tuple[str, int]]:
    """The tables that are not what the log makes of them, and in how many records."""
    state = replayed(connection)
    records = queries.records(connection)
    found: list[tuple[str, int]] = []
    for noun in NOUNS:
        stored = {noun.key_of(record): record for record in records[noun.table]}
        folded = state.tables[noun.table].rows
        wrong = sum(stored.get(key) != folded.get(key) for key in stored.keys() | folded.keys())
        if wrong:
            found.append((noun.table, wrong))
    return found
