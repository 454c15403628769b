"""Fixtures for tests of commands."""

from pathlib import Path

import pytest

from tests.cli.support import Place


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Place:
    """An empty directory and an empty database, of each kind."""
    return Place(tmp_path / "data", database_url)
