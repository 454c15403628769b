"""The benchmark's arithmetic, how its load generator reads responses, and one run of both."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import api, processes, report, serving
from bench.api import BadAnswer
from bench.arithmetic import Rounds, Sample, Target
from bench.fleet import events_in
from bench.report import Line
from bench.serving import Running

MESSAGE = '{"id":%d,"type":"message","message":{"id":7,"content":"x","reactions":[]},"flags":[]}'
HEARTBEAT = '{"id":%d,"type":"heartbeat"}'


def answered(*events: str) -> bytes:
    body = f'{{"result":"success","msg":"","events":[{",".join(events)}],"queue_id":"q"}}'
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


# Arithmetic


def test_rounds_count_the_warm_up_in_processor_time_but_not_in_rates() -> None:
    rounds = Rounds(
        [
            Sample(10, 2.0, [1.0, 2.0, 3.0, 4.0], server_cpu=0.5, generator=0.1),
            Sample(30, 4.0, [5.0, 5.0, 5.0, 9.0], server_cpu=1.5, generator=0.3),
        ]
    )
    assert rounds.medians() == [2.5, 5.0]
    assert rounds.rates() == [2.0, 1.0]
    assert rounds.p99() == 9.0
    assert rounds.cpu == 0.05
    assert rounds.generator == 0.3


@pytest.mark.parametrize(
    ("measured", "at_least", "holds"),
    [
        (1.9, False, True),
        (2.0, False, True),
        (2.1, False, False),
        (1.9, True, False),
        (2.0, True, True),
        (2.1, True, True),
    ],
)
def test_a_target_holds_at_its_bound_and_on_the_right_side_of_it(
    measured: float, at_least: bool, holds: bool
) -> None:
    assert Target("p50", measured, 2.0, "ms", at_least).holds is holds


# The report


def lines() -> list[Line]:
    fast = Line("fast", "fast work", "ms", [0.001, 0.003, 0.002], 0.004)
    fast.limit, fast.limit_title = [0.001, 0.001, 0.001], "bare"
    fast.targets = [Target("p50", 0.002, 0.002, "ms"), Target("p99", 0.004, 0.003, "ms")]
    many = Line("many", "much work", "/s", [100.0], targets=[Target("", 100.0, 90.0, "/s", True)])
    return [fast, many, Line("limit", "limit: bare", "ms", [0.001])]


def test_the_last_line_says_which_targets_are_met() -> None:
    assert report.summary(lines()) == "2 of 3 targets met; missed: fast work (p99 ≤ 3 ms)."
    assert report.summary(lines()[1:]) == "1 of 1 targets met."


def test_the_table_shows_each_cost_with_its_limit_and_missed_targets() -> None:
    shown = report.table(lines(), {"python": "3"}).splitlines()
    for part in ("2 ms", "1 ms bare", "2x", "100%", "p50 ≤ 2 ms, p99 ≤ 3 ms", "missed (p99 4 ms)"):
        assert part in shown[1]
    assert shown[2].split()[-3:] == ["≥", "90/s", "met"]
    assert shown[3].split()[:2] == ["limit:", "bare"]
    assert "met" not in shown[3]
    assert shown[-1] == "python: 3"


# What the load generator reads


@pytest.mark.parametrize(
    ("events", "last", "messages"),
    [
        ([], -1, 0),
        ([HEARTBEAT % 5], 5, 0),
        ([MESSAGE % 1048576], 1048576, 1),
        ([MESSAGE % 5, MESSAGE % 12], 12, 2),
        ([MESSAGE % 5, HEARTBEAT % 6], 6, 1),
    ],
)
def test_the_last_event_id_and_messages_are_found_without_parsing_json(
    events: list[str], last: int, messages: int
) -> None:
    assert events_in(answered(*events)) == (last, messages)


@pytest.mark.parametrize("body", ["{}", '{"events":[{"type":"message","id":5}]}'])
def test_differently_formatted_responses_are_not_misread(body: str) -> None:
    with pytest.raises(BadAnswer):
        events_in(body.encode())


def test_a_response_ends_at_its_content_length() -> None:
    answer = answered(HEARTBEAT % 5)
    assert api.end_of(answer) == len(answer)
    assert api.end_of(answer.replace(b"Content-Length", b"content-length")) == len(answer)
    assert api.end_of(answer[:30]) == 0


@pytest.mark.parametrize("answer", [b"HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n"])
def test_an_error_response_ends_the_measurement(answer: bytes) -> None:
    with pytest.raises(BadAnswer):
        api.end_of(answer)


# One run, against the bare protocol


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Running]:
    body = '{"result":"success","msg":"","queue_id":"q","last_event_id":-1}'
    plain = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    paths = ("/register", "/messages", "/users/me")
    answers = {**dict.fromkeys(paths, plain), "/events": answered(MESSAGE % 5).decode()}
    command = [sys.executable, "-m", "bench.bare"]
    with serving.running(command, tmp_path / "bare.log", json.dumps(answers)) as running:
        yield running


def test_every_waiting_client_gets_each_message_once(bare: Running) -> None:
    people = [api.basic(f"p{number}@example.com", "key") for number in range(30)]
    with serving.generator() as generator:
        sent = {"name": "fleet", "port": bare.port, "send": api.send(people[0], "c", "t")}
        assert generator.do("gather", people=people, **sent)["operations"] == 30
        bursts = generator.do("bursts", name="fleet", seconds=0.05)
        assert bursts["operations"] % 30 == 0
        assert all(
            first <= last for first, last in zip(bursts["first"], bursts["last"], strict=True)
        )
        cycles = generator.do("cycles", name="fleet", seconds=0.05)
        assert cycles["messages"] == cycles["answers"] == 30 * cycles["sent"]
        generator.do("part", name="fleet")
        asked = generator.do(
            "requests",
            ports=[bare.port],
            requests=[api.empty(people[0])] * 3,
            seconds=0.05,
        )
        assert 3 <= len(asked["latencies"]) <= asked["operations"]


def test_the_resources_of_a_process_are_measured(bare: Running) -> None:
    assert processes.pss(bare.pid) > 1 << 20
    assert processes.cpu(bare.pid) > 0
    assert processes.family(bare.pid) == [bare.pid]
