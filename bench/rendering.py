"""What rendering a message costs: usual ones, and one that was written to be slow."""

import time

from bench.report import Case, Sample
from tertulia.markup.render import Renderer
from tertulia.model.groups import SYSTEM_GROUPS
from tertulia.model.realm import Realm
from tertulia.model.users import User
from tertulia.state.moment import Moment
from tertulia.state.organization import State

MESSAGES = {
    "short": "Good morning! How are you today?",
    "usual": (
        "@**Ann** I think **we should** try `make it` again, see https://example.com/a/b for"
        " more. :smile:\n\n* first one\n* then *two*"
    ),
    "code": "```python\n" + "def one(x: int) -> str:\n    return f'{x}'  # two\n" * 10 + "```",
    "hostile": "> " * 50 + "[](" * 1000 + "*a **b " * 300 + "`" * 999 + "@**" * 1000,
}
"""Messages by what they are."""


def cases(seconds: float) -> list[Case]:
    """Rendering each of the messages, one after the other, without a server."""
    return [
        Case(f"render_{name}", f"render a {name} message").add(_sample(content, seconds))
        for name, content in MESSAGES.items()
    ]


def _sample(content: str, seconds: float) -> Sample:
    state = State()
    state.realms.put(Realm(uuid="bench", name="Bench", created_at=0))
    state.users.put(User(id=9, address="ann@example.com", full_name="Ann"))
    for group in SYSTEM_GROUPS:
        state.groups.put(group)
    renderer, moment = Renderer(), Moment(state, 0, 9)
    renderer.render(moment, content)  # What is read once is read now.
    clock = time.perf_counter
    took: list[float] = []
    start = clock()
    while clock() - start < seconds:
        before = clock()
        renderer.render(moment, content)
        took.append(clock() - before)
    return Sample(took, clock() - start)
