"""Templates by which the owner of a bot makes messages of any JSON.

They are written in Jinja's language, by people who may only send messages: so they run in its
sandbox, and in a process that is killed when it takes too long or too much.
"""

from typing import Any, Final

from tertulia.model.errors import Refused, Unavailable
from tertulia.workers import TEXTS, Allowance, Exceeded, Failed, Job, Unanswered

MAX_TEMPLATE: Final = 4000
"""Characters of one."""
MAX_SECONDS: Final = 0.25
"""Of the processor, for the templates of one message."""
PATIENCE: Final = 5.0
"""Seconds that a webhook waits for them, on a busy server."""
MAX_RESULT: Final = 20_000
"""Characters of what a template becomes."""

RENDER: Final[Job[list[str]]] = Job(
    "tertulia.service.webhooks.template_work:rendered",
    list[str],
    load="tertulia.service.webhooks.template_work:load",
)


async def rendered(templates: list[str], payload: str) -> list[str]:
    """What the templates make of the JSON text. Refused, with what is wrong in a sentence, where
    one is wrong or takes too long; Unavailable where too much waits."""
    return await _done(templates, payload)


async def check(template: str, what: str) -> None:
    """Refused where it is no template."""
    if len(template) > MAX_TEMPLATE:
        raise Refused(f"The {what} has at most {MAX_TEMPLATE} characters.")
    if template:
        await _done([template], "")


async def _done(templates: list[str], payload: str) -> list[str]:
    arguments: tuple[Any, ...] = (templates, payload, MAX_RESULT)
    try:
        return await TEXTS.call(RENDER, *arguments, allowance=Allowance(MAX_SECONDS, PATIENCE))
    except Failed as error:
        raise Refused(f"The template cannot be used: {error}"[:500]) from None
    except Exceeded:
        raise Refused("The template takes too long.") from None
    except Unanswered as error:
        raise Unavailable("Too much is waiting to be rendered.") from error
