"""The cases: the lines of the table, with how they're measured and their targets.

To add a case, create a module with a `CASE`, and list it in `all.py`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.context import Bench
from bench.report import Line


@dataclass(frozen=True)
class Case:
    """Lines of the table that are measured together."""

    name: str
    """For --only."""
    about: str
    """Shown by --list and while it runs."""
    measure: Callable[[Bench], Iterable[Line]]
    is_quick: bool = True
    """Whether it's measured with QUICK=1."""
