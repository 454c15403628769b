"""Rendering messages: typical ones, and one that is designed to be slow."""

import time
from collections.abc import Iterator

from bench.arithmetic import Rounds, Sample
from bench.cases import Case
from bench.context import Bench
from bench.report import Line
from tertulia.markup.render import Renderer
from tertulia.model.groups import SYSTEM_GROUPS
from tertulia.model.organization import Realm
from tertulia.model.users import User
from tertulia.state.decision import CommandContext
from tertulia.state.state import State

MESSAGES = {
    "short": "Good morning! How are you today?",
    "usual": (
        "@**Ann** I think **we should** try `make it` again, see https://example.com/a/b for"
        " more. :smile:\n\n* first one\n* then *two*"
    ),
    "code": "```python\n" + "def one(x: int) -> str:\n    return f'{x}'  # two\n" * 10 + "```",
    "long Japanese": "こんにちは、世界。" * 1111,
    "long emoji": "😀" * 10_000,
    "hostile": "> " * 50 + "[](" * 1000 + "*a **b " * 300 + "`" * 999 + "@**" * 1000,
}
"""Messages by kind."""


def _measure(bench: Bench) -> Iterator[Line]:
    """Render each of the messages in turn, without a server."""
    for name, content in MESSAGES.items():
        rounds = Rounds([_sample(content, bench.seconds / 4) for _ in range(bench.rounds)])
        title = f"render a {name} message, without a server"
        yield Line(f"render_{name.replace(' ', '_')}", title, "ms", rounds.medians(), rounds.p99())


def _sample(content: str, seconds: float) -> Sample:
    state = State()
    state.realms.put(Realm(uuid="bench", name="Bench", created_at=0))
    state.users.put(User(id=9, address="ann@example.com", full_name="Ann"))
    for group in SYSTEM_GROUPS:
        state.groups.put(group)
    renderer, context = Renderer(in_place=True), CommandContext(state, 0, 9)
    renderer.render(context, content)  # Fill the caches.
    clock = time.perf_counter
    took: list[float] = []
    start = clock()
    while clock() - start < seconds:
        before = clock()
        renderer.render(context, content)
        took.append(clock() - before)
    return Sample(len(took), clock() - start, took)


CASE = Case("render", "rendering messages of several kinds", _measure, is_quick=False)
