"""The short form of the chaos: a node is lost, one stands still, the database does both, and
connections are cut; what clients were told is true."""

import pytest

from tests.chaos.plan import SHORT_SECONDS, short
from tests.chaos.run import happened


def test_what_clients_are_told_is_true_whatever_fails() -> None:
    said: list[str] = []
    wrong = happened(1, short(), SHORT_SECONDS, said.append)
    if wrong is None:
        pytest.skip("no PostgreSQL of the machine: initdb is not installed")
    assert not wrong, "\n".join([*wrong[:20], *said])
