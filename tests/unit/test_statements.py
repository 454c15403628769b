"""Query plans that determine a statement's cost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tertulia.model.changes import Entry, MessagesMoved
from tertulia.model.messages import Propagation
from tertulia.service.config import Config
from tertulia.store import editing
from tertulia.store.store import database_at
from tests import databases


def test_flags_removed_by_a_move_are_found_by_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By person and message, moving 10,000 messages out of sight of 5,000 people would be 50
    million lookups."""
    databases.migrated(Config(data_dir=str(tmp_path)))
    connection = database_at(tmp_path, "").connect(readonly=False)
    deleting: list[tuple[str, Sequence[Any]]] = []
    run = connection.run

    def noted(sql: str, parameters: Sequence[Any] = ()) -> None:
        if sql.startswith("DELETE FROM message_flags"):
            deleting.append((sql, parameters))
        run(sql, parameters)

    monkeypatch.setattr(connection, "run", noted)
    change = MessagesMoved(
        message_ids=(1, 2),
        anchor_id=1,
        channel_id=1,
        topic="here",
        new_channel_id=2,
        new_topic="there",
        propagation=Propagation.LATER,
        lost=(((1, 2), (1, 2, 3)),),
    )
    connection.run("BEGIN")
    editing.write(connection, [Entry(seq=1, at=0.0, actor_id=1, change=change)])
    ((sql, parameters),) = deleting
    plan = " ".join(str(row) for row in connection.query(f"EXPLAIN QUERY PLAN {sql}", parameters))
    assert "message_flags_by_message" in plan
    connection.close()
