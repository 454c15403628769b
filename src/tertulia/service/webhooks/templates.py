"""Jinja templates with which bots' owners turn any JSON into messages. Their authors are ordinary
users, so templates run in Jinja's sandbox, in a process that is killed if it takes too much time or
memory. All people share this process, so each person has a share of its time."""

import json
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
"""Longest template, in characters."""
MAX_SECONDS: Final = 0.25
"""The most processor seconds for the templates of one message."""
PATIENCE: Final = 5.0
"""The number of seconds for which a webhook waits on a busy server."""
MAX_RESULT: Final = 20_000
"""Longest result, in characters."""
SHARE: Final = 0.1
"""The share of the processor for one person's templates on one node."""
BURST_SECONDS: Final = 3.0
"""The burst after a pause, in processor seconds. A typical template takes a hundredth of a
second."""
LOST_SECONDS: Final = 1.0
"""The cost, in processor seconds, of a template that took too long, including the restart of the
process."""
_KNOWN: Final = 1000

RENDER: Final[WorkerTask[list[str]]] = WorkerTask(
    "tertulia.service.webhooks.templates:render_templates",
    list[str],
    load="tertulia.service.webhooks.templates:load_jinja",
)


class Shares:
    """Each person's share of processor time on this node."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._whole_at: dict[int, float] = {}
        """The time when each person's burst is fully available again."""

    @contextmanager
    def spent(self, person_id: int) -> Iterator[TaskBudget]:
        """Reserve the allowance for the body of the context, and return unused time. Raise TooOften
        if nothing is left."""
        now = self._clock()
        if len(self._whole_at) >= _KNOWN:
            self._whole_at = {person_id: at for person_id, at in self._whole_at.items() if at > now}
        ahead = max(self._whole_at.get(person_id, now) - now, 0.0) + MAX_SECONDS / SHARE
        if (wait := ahead - BURST_SECONDS / SHARE) > 0:
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
    """Render a person's templates with a JSON text. Raise Refused with the reason if a template is
    invalid or takes too long, TooOften if the person's share is used up, and Unavailable if too
    many are waiting."""
    return await _done(shares, person_id, templates, payload)


async def check(shares: Shares, person_id: int, template: str, what: str) -> None:
    """Raise Refused if the template is invalid; TooOften and Unavailable as in `rendered`."""
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


def load_jinja(templates: list[str], payload: str, longest: int) -> None:
    """Load the libraries."""
    import jinja2.sandbox  # noqa: F401 (its time does not count)


def render_templates(templates: list[str], payload: str, longest: int) -> list[str]:
    """Render the templates with a JSON text, truncated to `longest` characters. Only compile them
    if the text is empty.

    The fields of an object are variables, and `payload` is all of it. Missing values are empty.
    Raise jinja2.TemplateError, and what templates can raise.
    """
    from jinja2 import ChainableUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=ChainableUndefined, autoescape=False)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False}
    results = [environment.from_string(template) for template in templates]
    if not payload:
        return []
    value: Any = json.loads(payload)
    names = value if isinstance(value, dict) else {}
    variables = {name: value for name, value in names.items() if name.isidentifier()}
    return [
        _beginning(template.generate({**variables, "payload": value}), longest)
        for template in results
    ]


def _beginning(pieces: Iterator[str], longest: int) -> str:
    size, results = 0, []
    for piece in pieces:
        results.append(piece[: longest - size])
        size += len(results[-1])
        if size >= longest:
            break
    return "".join(results)
