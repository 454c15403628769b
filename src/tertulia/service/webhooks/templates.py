"""Templates by which the owner of a bot makes messages of any JSON.

They are written in Jinja's language, by people who may only send messages: so they run in its
sandbox, and in a process that is killed when it takes too long or too much. That process is
everybody's, and so each person's templates have a share of its time.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tertulia.model.errors import Refused, TooOften, Unavailable
from tertulia.workers import (
    TEXTS,
    TaskBudget,
    TaskFailed,
    TaskLimitExceeded,
    TaskUnavailable,
    WorkerTask,
)

MAX_TEMPLATE: Final = 4000
"""Characters of one."""
MAX_SECONDS: Final = 0.25
"""Of the processor, for the templates of one message."""
PATIENCE: Final = 5.0
"""Seconds that a webhook waits for them, on a busy server."""
MAX_RESULT: Final = 20_000
"""Characters of what a template becomes."""
SHARE: Final = 0.1
"""Of the processor, for the templates of one person's bots on one node."""
AT_ONCE_SECONDS: Final = 3.0
"""So much of it they may take at once, after they took nothing for a while. A usual template takes
a hundredth of a second."""
LOST_SECONDS: Final = 1.0
"""What a template costs that took too long: its time, and that of another process's start."""
_KNOWN: Final = 1000

RENDER: Final[WorkerTask[list[str]]] = WorkerTask(
    "tertulia.service.webhooks.template_work:rendered",
    list[str],
    load="tertulia.service.webhooks.template_work:load",
)


class Shares:
    """What each person's templates took lately on this node."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._whole_at: dict[int, float] = {}
        """When each has all of `AT_ONCE_SECONDS` again; none who has it now is missed."""

    @contextmanager
    def spent(self, person_id: int) -> Iterator[TaskBudget]:
        """What the person's templates may take, for the time of the context; what they leave is
        theirs again. TooOften where nothing is left."""
        now = self._clock()
        if len(self._whole_at) >= _KNOWN:
            self._whole_at = {one: at for one, at in self._whole_at.items() if at > now}
        ahead = max(self._whole_at.get(person_id, now) - now, 0.0) + MAX_SECONDS / SHARE
        if (wait := ahead - AT_ONCE_SECONDS / SHARE) > 0:
            seconds = max(1, math.ceil(wait))
            raise TooOften(
                seconds,
                "The templates of this person's bots have taken too long recently. Wait"
                f" {seconds} s, then try again.",
            )
        self._whole_at[person_id] = now + ahead
        allowance = TaskBudget(MAX_SECONDS, PATIENCE)
        is_lost = False
        try:
            yield allowance
        except TaskLimitExceeded:
            is_lost = True
            raise
        finally:
            taken = LOST_SECONDS if is_lost else MAX_SECONDS - allowance.processor
            at = self._whole_at.get(person_id, now)
            self._whole_at[person_id] = at + (taken - MAX_SECONDS) / SHARE


async def rendered(shares: Shares, person_id: int, templates: list[str], payload: str) -> list[str]:
    """What the person's templates make of the JSON text. Refused, with what is wrong in a sentence,
    where one is wrong or takes too long; TooOften where they all do together; Unavailable where too
    much waits."""
    return await _done(shares, person_id, templates, payload)


async def check(shares: Shares, person_id: int, template: str, what: str) -> None:
    """Refused where it is no template; TooOften and Unavailable as in `rendered`."""
    if len(template) > MAX_TEMPLATE:
        raise Refused(f"The {what} can have at most {MAX_TEMPLATE} characters.")
    if template:
        await _done(shares, person_id, [template], "")


async def _done(shares: Shares, person_id: int, templates: list[str], payload: str) -> list[str]:
    arguments: tuple[Any, ...] = (templates, payload, MAX_RESULT)
    try:
        with shares.spent(person_id) as allowance:
            return await TEXTS.call(RENDER, *arguments, allowance=allowance)
    except TaskFailed as error:
        raise Refused(f"Invalid template: {error}"[:500]) from None
    except TaskLimitExceeded:
        raise Refused("The template takes too long to render.") from None
    except TaskUnavailable as error:
        raise Unavailable("Too many templates are waiting to be rendered. Try again.") from error
