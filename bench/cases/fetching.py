"""Requests of a starting client: POST /register and GET /users."""

from collections.abc import Iterator

from bench import api
from bench.arithmetic import Target
from bench.cases import Case
from bench.context import Bench
from bench.datasets import COMPANY, SHAPES, TEAM
from bench.report import Line


def _measure(bench: Bench) -> Iterator[Line]:
    team, company = bench.served(TEAM), bench.served(COMPANY)
    text, many, busiest = team.made.usual, company.made.usual, company.made.people[0]
    people = {name: SHAPES[name].people for name in (TEAM, COMPANY)}
    result = bench.interleaved(
        {
            "empty": lambda: bench.requests(company.server, api.empty(many)),
            TEAM: lambda: bench.requests(team.server, api.register(text)),
            COMPANY: lambda: bench.requests(company.server, api.register(many)),
            "busiest": lambda: bench.requests(company.server, api.register(busiest)),
            "users": lambda: bench.requests(company.server, api.users(many)),
        }
    )
    limit = result["empty"].medians()
    for name, title, bound in (
        (TEAM, f"POST /register, {people[TEAM]} users", 0.002),
        (COMPANY, f"POST /register, {people[COMPANY]:,} users and 520 channels", 0.006),
        ("busiest", "POST /register, subscribed to all channels, all unread", None),
        ("users", f"GET /users with {people[COMPANY]:,} users", 0.003),
    ):
        rounds = result[name]
        line = Line(f"fetch_{name}", title, "ms", rounds.medians(), rounds.p99())
        line.limit, line.limit_title = limit, "empty request"
        line.cpu, line.generator = rounds.cpu, rounds.generator
        line.targets = [] if bound is None else [Target("p50", line.value, bound, "ms")]
        line.more = {"bytes": rounds.samples[0].counts["bytes"]}
        yield line


CASE = Case("fetch", "POST /register and GET /users", _measure)
