"""Rendering code and formulas in a worker, because they can take long.

Rendering first collects these parts. `prepare` lets a worker render them within a time limit, and
caches their HTML. A part that took too long is cached as plain text, and isn't tried again while
it's in the cache.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

from tertulia.markup import code, katex
from tertulia.markup.elements import escaped
from tertulia.workers import (
    TEXTS,
    TaskBudget,
    TaskFailed,
    TaskLimitExceeded,
    TaskUnavailable,
    WorkerTask,
)

logger = logging.getLogger("tertulia.markup")

MAX_CACHED: Final = 16 * 1024 * 1024
"""The most characters per cache."""
MAX_CODE_SECONDS: Final = 0.4
"""CPU time for all code of a message. A usual code block takes a hundredth of it, but some grammars
take exponential time for crafted code."""
MAX_FORMULA_SECONDS: Final = 1.0
"""CPU time for all formulas of a message."""
MAX_FORMULA_SIZE: Final = 131_072
"""The most characters of HTML of all formulas of a message."""
MAX_WAIT: Final = 5.0
"""How long a message waits for its code, and then for its formulas, on a busy server."""

MAX_LOST: Final = 3
LOST_SECONDS: Final = 600.0
"""If code of a language ended workers `MAX_LOST` times in this period, the language isn't
highlighted until the period is over."""


class Code(NamedTuple):
    """A code block and the name of its language."""

    source: str
    name: str


class Formula(NamedTuple):
    """A TeX formula, and whether it's a block."""

    tex: str
    display: bool


Part = TypeVar("Part", Code, Formula)


class RenderCache(Generic[Part]):
    """HTML by part, or None for an invalid formula. Drops the least recently used."""

    def __init__(self) -> None:
        self._html: OrderedDict[Part, str | None] = OrderedDict()
        self.size = 0

    def __contains__(self, part: Part) -> bool:
        return part in self._html

    def __getitem__(self, part: Part) -> str | None:
        self._html.move_to_end(part)
        return self._html[part]

    def __setitem__(self, part: Part, html: str | None) -> None:
        if part in self._html:
            self.size -= _size(part, self._html.pop(part))
        self._html[part] = html
        self.size += _size(part, html)
        while self.size > MAX_CACHED:
            old, gone = self._html.popitem(last=False)
            self.size -= _size(old, gone)


def _size(part: Code | Formula, html: str | None) -> int:
    return len(part[0]) + len(html or "") + 100


code_cache: Final[RenderCache[Code]] = RenderCache()
formula_cache: Final[RenderCache[Formula]] = RenderCache()

HIGHLIGHT: Final[WorkerTask[str | None]] = WorkerTask(
    "tertulia.markup.code:highlighted", str, load="tertulia.markup.code:load"
)
TYPESET: Final[WorkerTask[str | None]] = WorkerTask(
    "tertulia.markup.katex:typeset",
    str | None,
    load="tertulia.markup.katex:load",
)


@dataclass
class PartsToRender:
    """The code and formulas of a message that aren't cached."""

    codes: list[Code] = field(default_factory=list)
    formulas: list[Formula] = field(default_factory=list)


async def prepare(to_render: PartsToRender) -> None:
    """Let a worker render the parts within a message's limits, and cache the HTML."""
    await _prepare(to_render.codes, code_cache, HIGHLIGHT, MAX_CODE_SECONDS, _plain_code)
    await _prepare(to_render.formulas, formula_cache, TYPESET, MAX_FORMULA_SECONDS, _plain_formula)


async def _prepare(
    parts: Iterable[Part],
    cache: RenderCache[Part],
    job: WorkerTask[str | None],
    seconds: float,
    plain: Callable[[Part], str],
) -> None:
    allowance = TaskBudget(seconds, MAX_WAIT)
    for part in dict.fromkeys(parts):
        is_wanted = partial(_is_wanted, part)
        if not is_wanted():
            continue
        try:
            cache[part] = await TEXTS.call(job, *part, allowance=allowance, is_wanted=is_wanted)
        except TaskLimitExceeded:
            cache[part] = plain(part)
            if isinstance(part, Code):
                _lost.note(part.name)
        except TaskUnavailable as error:
            logger.info("a part of a message stays plain: %s", error)
            return
        except TaskFailed as error:
            logger.warning("a part of a message stays plain: %s: %s", error.kind, error)
            cache[part] = plain(part)


class LostLanguages:
    """Languages that aren't highlighted for a while, because their code made several workers
    end."""

    def __init__(self) -> None:
        self._lost: dict[str, list[float]] = {}
        """The times of the newest losses, by name of the language."""

    def note(self, name: str) -> None:
        """Record that code of the language ended a worker."""
        self._lost[name] = [*self._lost.get(name, []), time.monotonic()][-MAX_LOST:]

    def is_paused(self, name: str) -> bool:
        lost = self._lost.get(name, [])
        return len(lost) >= MAX_LOST and time.monotonic() - lost[0] < LOST_SECONDS


_lost: Final = LostLanguages()


def _is_wanted(part: Code | Formula) -> bool:
    return not (isinstance(part, Code) and _lost.is_paused(part.name))


def _plain_code(part: Code) -> str:
    return escaped(part.source)


def _plain_formula(part: Formula) -> str:
    return katex.formula_source(part.tex, display=part.display)


@dataclass
class ExpensiveParts:
    """Renders a message's code and formulas: from the caches, in place, or as plain text."""

    in_place: bool = True
    """Whether to render parts that aren't cached in this process, for trusted text."""
    to_render: PartsToRender | None = None
    """Collects the parts that aren't cached, for `prepare`."""
    room: int = MAX_FORMULA_SIZE
    """The characters of HTML that are left for formulas."""
    is_plain: bool = False
    """Whether to leave everything as plain text."""

    def code(self, source: str, name: str) -> str:
        """Return the code as HTML, highlighted if possible."""
        part = Code(source, name)
        if self.is_plain:
            return _plain_code(part)
        if part in code_cache:
            return code_cache[part] or ""
        if self.to_render is not None:
            self.to_render.codes.append(part)
        elif self.in_place:
            code_cache[part] = result = code.highlighted(source, name)
            return result
        return _plain_code(part)

    def formula(self, tex: str, *, display: bool) -> str | None:
        """Return the formula as HTML, or None if it's invalid."""
        part = Formula(tex, display)
        if self.is_plain or self.room <= 0:
            return _plain_formula(part)
        if part in formula_cache:
            result = formula_cache[part]
        elif self.to_render is not None:
            self.to_render.formulas.append(part)
            return None
        elif self.in_place:
            formula_cache[part] = result = katex.typeset(tex, display)
        else:
            return _plain_formula(part)
        self.room -= len(result or "")
        return result
