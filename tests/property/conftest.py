"""Which made-up histories run."""

import pytest

from tests.property import histories


@pytest.fixture(autouse=True, scope="session")
def _day(pytestconfig: pytest.Config) -> None:
    """Those of the day; all of them where many are asked for."""
    if histories.HISTORIES == 1:
        histories.day = pytestconfig.option.postgres
