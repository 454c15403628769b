"""Webhooks: an incoming one compared with a message, and 10,000 outgoing calls that wait for an
unavailable service."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from bench import api, processes
from bench.arithmetic import Rounds, Sample, Target
from bench.cases import Case
from bench.context import Bench, Served
from bench.datasets import COMPANY
from bench.organization import SMALL
from bench.report import Line
from bench.serving import BenchError

SETTINGS = """
outgoing_webhook_networks = "127.0.0.1"
"""
DEAD = "http://127.0.0.1:9/"
"""A URL that nothing listens on."""
WAITING = 10_000
PUSHED = json.dumps(
    {
        "ref": "refs/heads/main",
        "compare": "https://git.example.com/chat/compare/1...2",
        "commits": [
            {"id": str(n) * 40, "message": f"Mend the {n}", "url": f"https://git.example.com/{n}"}
            for n in range(3)
        ],
        "pusher": {"name": "ann"},
        "repository": {"name": "chat"},
    }
)
MOST = 2.5
"""The largest allowed multiple of the processor time of a message, for the payload, the delivery
log, and longer content."""
MOST_BESIDE = 1.15
"""The largest allowed multiple of the processor time of a message without waiting calls."""
MOST_MEMORY = 16 << 20
"""The most memory, in bytes, for 10,000 waiting calls in addition to the messages."""


def _measure(bench: Bench) -> Iterator[Line]:
    with (
        bench.fresh(COMPANY, settings=SETTINGS) as quiet,
        bench.fresh(COMPANY, settings=SETTINGS) as busy,
    ):
        hook = _hook(quiet)

        def message(served: Served) -> Sample:
            return bench.requests(served.server, api.send(served.made.people[0], SMALL, "topic"))

        result = bench.interleaved(
            {"message": lambda: message(quiet), "hook": lambda: bench.requests(quiet.server, hook)}
        )
        yield _line("webhooks_message", "POST /messages, for comparison", result["message"])
        line = _line("webhooks_in", "POST /external/github, 3 commits", result["hook"])
        ratio = result["hook"].cpu / result["message"].cpu
        line.targets = [Target("CPU relative to a message", ratio, MOST, "x")]
        yield line
        # The same messages to a bot without a service, to subtract their own cost.
        grown = _grown(busy, bot_type=3, payload_url=json.dumps(DEAD)) - _grown(quiet)
        result = bench.interleaved({"none": lambda: message(quiet), "all": lambda: message(busy)})
        line = _line(
            "webhooks_waiting", f"POST /messages, {WAITING:,} pending webhook calls", result["all"]
        )
        ratio = result["all"].cpu / result["none"].cpu
        line.limit, line.limit_title = result["none"].medians(), "none pending"
        line.targets = [
            Target("CPU relative to none pending", ratio, MOST_BESIDE, "x"),
            Target("memory for the calls", grown, MOST_MEMORY, "MiB"),
        ]
        yield line


def _made(served: Served, **values: object) -> tuple[int, str]:
    """Create a bot. Return its ID and key."""
    owner = served.made.organization.owner
    answer = api.asked(served.port, api.form("POST", "/bots", owner, values))
    result = json.loads(answer.partition(b"\r\n\r\n")[2])
    if result["result"] != "success":
        raise BenchError(f"no bot could be made: {result}")
    return result["user_id"], result["api_key"]


def _hook(served: Served) -> str:
    """Return a payload from GitHub."""
    _, key = _made(served, full_name="Hook", short_name="hook", bot_type=2)
    target = f"/api/v1/external/github?api_key={key}&stream={quote(SMALL)}&topic=pushes"
    request = (
        f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"X-GitHub-Event: push\r\nContent-Length: {len(PUSHED)}\r\n\r\n{PUSHED}"
    )
    answer = api.asked(served.port, request)
    if b'"success"' not in answer:
        raise BenchError(f"the webhook was refused: {answer[:300]!r}")
    return request


def _grown(served: Served, **bot: object) -> int:
    """Return the growth of the server's memory in bytes while a bot gets this many messages."""
    bot_id, _ = _made(served, full_name="Away", short_name="away", **bot)
    sent = {"type": "direct", "to": [bot_id], "content": "Are you there?"}
    request = api.form("POST", "/messages", served.made.people[0], sent)
    before = processes.pss(served.server.pid)
    with ThreadPoolExecutor(32) as pool:
        for answer in pool.map(api.asked, [served.port] * WAITING, [request] * WAITING):
            if b'"success"' not in answer:
                raise BenchError("a message was refused")
    return processes.pss(served.server.pid) - before


def _line(name: str, title: str, rounds: Rounds) -> Line:
    return Line(
        name,
        title,
        "ms",
        rounds.medians(),
        rounds.p99(),
        cpu=rounds.cpu,
        generator=rounds.generator,
    )


CASE = Case("webhooks", "webhooks: incoming, and 10,000 pending outgoing calls", _measure)
