"""The cases, each in a module of its own: what is measured, how, and what it is to be.

To add one: a module here with a `CASE`, and its line in `all.py`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.context import Bench
from bench.report import Line


@dataclass(frozen=True)
class Case:
    """A few lines of the table that are measured together."""

    name: str
    """That --only knows it by."""
    about: str
    """What it measures, for --list and while it runs."""
    measure: Callable[[Bench], Iterable[Line]]
    is_quick: bool = True
    """Whether it is measured with QUICK=1 too."""
