"""What it costs that people want to be told by mail: a message to a channel of 5,000 of whom all
do, beside one of whom nobody does."""

from collections.abc import Iterator

from bench import asking
from bench.arithmetic import Rounds, Sample, Target
from bench.cases import Case
from bench.context import Bench, Served
from bench.datasets import COMPANY
from bench.organization import LARGE, SIZES
from bench.report import Line
from bench.serving import BenchError

MAILS = """
external_url = "http://localhost"
smtp_host = "127.0.0.1"
smtp_port = 9
smtp_security = "none"
"""
"""The settings of a server that tells by mail, which nobody takes: it is measured before any is
due."""
EVERYBODY = 7
"""The ID of the group that everybody is in."""
MOST = 1.25
"""Times the processor time of a message of which nobody is told."""


def _measure(bench: Bench) -> Iterator[Line]:
    with (
        bench.fresh(COMPANY, settings=MAILS) as quiet,
        bench.fresh(COMPANY, settings=MAILS) as telling,
    ):
        turn_on(telling, "enable_stream_email_notifications")

        def send(served: Served) -> Sample:
            return bench.requests(served.server, asking.send(served.made.people[0], LARGE, "topic"))

        found = bench.interleaved({"none": lambda: send(quiet), "all": lambda: send(telling)})
    none, everybody = found["none"], found["all"]
    line = _line("notices_none", "no email notifications", none)
    yield line
    line = _line("notices_all", f"email notifications for all {SIZES[LARGE]:,}", everybody)
    line.limit, line.limit_title = none.medians(), "without them"
    line.targets = [Target("CPU relative to without", everybody.cpu / none.cpu, MOST, "x")]
    yield line


def turn_on(served: Served, setting: str) -> None:
    """Everybody wants to be told of everything in all channels, by that setting."""
    values = {
        setting: True,
        "target_users": {"group_ids": [EVERYBODY]},
    }
    request = asking.form("PATCH", "/settings", served.made.organization.owner, values)
    answer = asking.asked(served.port, request)
    if b'"success"' not in answer:
        raise BenchError(f"the settings could not be changed: {answer[:200]!r}")


def _line(name: str, title: str, found: Rounds) -> Line:
    return Line(
        name,
        f"POST /messages, channel of {SIZES[LARGE]:,}: {title}",
        "ms",
        found.medians(),
        found.p99(),
        cpu=found.cpu,
        generator=found.generator,
    )


CASE = Case("notices", "email notifications for a channel of 5,000", _measure)
