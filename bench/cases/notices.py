"""The cost of email notifications: a message to a channel of 5,000 people who all want them,
compared with one where nobody does."""

from collections.abc import Iterator

from bench import api
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
"""Settings of a server that sends emails to an unreachable mail server. No email is due during the
measurement."""
EVERYBODY = 7
"""The ID of the group of everyone."""
MOST = 1.25
"""The largest allowed multiple of the processor time of a message without notifications."""


def _measure(bench: Bench) -> Iterator[Line]:
    with (
        bench.fresh(COMPANY, settings=MAILS) as quiet,
        bench.fresh(COMPANY, settings=MAILS) as telling,
    ):
        turn_on(telling, "enable_stream_email_notifications")

        def send(served: Served) -> Sample:
            return bench.requests(served.server, api.send(served.made.people[0], LARGE, "topic"))

        result = bench.interleaved({"none": lambda: send(quiet), "all": lambda: send(telling)})
    none, everybody = result["none"], result["all"]
    line = _line("notices_none", "no email notifications", none)
    yield line
    line = _line("notices_all", f"email notifications for all {SIZES[LARGE]:,}", everybody)
    line.limit, line.limit_title = none.medians(), "without them"
    line.targets = [Target("CPU relative to without", everybody.cpu / none.cpu, MOST, "x")]
    yield line


def turn_on(served: Served, setting: str) -> None:
    """Turn on this notification setting for everyone, in all channels."""
    values = {
        setting: True,
        "target_users": {"group_ids": [EVERYBODY]},
    }
    request = api.form("PATCH", "/settings", served.made.organization.owner, values)
    answer = api.asked(served.port, request)
    if b'"success"' not in answer:
        raise BenchError(f"the settings could not be changed: {answer[:200]!r}")


def _line(name: str, title: str, rounds: Rounds) -> Line:
    return Line(
        name,
        f"POST /messages, channel of {SIZES[LARGE]:,}: {title}",
        "ms",
        rounds.medians(),
        rounds.p99(),
        cpu=rounds.cpu,
        generator=rounds.generator,
    )


CASE = Case("notices", "email notifications for a channel of 5,000", _measure)
