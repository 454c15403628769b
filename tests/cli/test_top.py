"""`tertulia top`."""

import json
from pathlib import Path

import pytest

from tertulia.cli.top import Scrape, figures, parsed, shown
from tests.cli.support import Place, run

BEFORE = """
# TYPE tertulia_start_time_seconds gauge
tertulia_start_time_seconds{node="a"} 5
tertulia_start_time_seconds{node="b"} 6
# TYPE tertulia_http_requests counter
tertulia_http_requests_total{node="a",group="/login",status="200"} 10
tertulia_http_requests_total{node="a",group="other",status="404"} 1
tertulia_http_requests_total{node="b",group="other",status="404"} 900
# TYPE tertulia_commit_seconds histogram
tertulia_commit_seconds_bucket{node="a",le="0.001"} 100
tertulia_commit_seconds_bucket{node="a",le="0.002"} 100
tertulia_commit_seconds_bucket{node="a",le="+Inf"} 100
tertulia_commit_seconds_count{node="a"} 100
tertulia_commit_seconds_sum{node="a"} 1
"""
AFTER = """
# TYPE tertulia_start_time_seconds gauge
tertulia_start_time_seconds{node="a"} 5
tertulia_start_time_seconds{node="b"} 7
# TYPE tertulia_http_requests counter
tertulia_http_requests_total{node="a",group="/login",status="200"} 14
tertulia_http_requests_total{node="a",group="other",status="404"} 2
tertulia_http_requests_total{node="b",group="other",status="404"} 3
# TYPE tertulia_commit_seconds histogram
tertulia_commit_seconds_bucket{node="a",le="0.001"} 104
tertulia_commit_seconds_bucket{node="a",le="0.002"} 110
tertulia_commit_seconds_bucket{node="a",le="+Inf"} 110
tertulia_commit_seconds_count{node="a"} 110
tertulia_commit_seconds_sum{node="a"} 2
# TYPE tertulia_event_loop_lag_seconds histogram
tertulia_event_loop_lag_seconds_bucket{node="a",le="10"} 0
tertulia_event_loop_lag_seconds_bucket{node="a",le="+Inf"} 1
tertulia_event_loop_lag_seconds_count{node="a"} 1
tertulia_event_loop_lag_seconds_sum{node="a"} 11
# TYPE tertulia_node_stale gauge
tertulia_node_stale{node="b"} 1
# TYPE tertulia_mails_waiting gauge
tertulia_mails_waiting{node="a"} 1
tertulia_mails_waiting{node="b"} 1
# TYPE tertulia_pushes_waiting gauge
tertulia_pushes_waiting{node="a"} 2
# TYPE tertulia_job_in_trouble gauge
tertulia_job_in_trouble{node="a",job="mails"} 1
tertulia_job_in_trouble{node="a",job="files"} 0
"""


def test_figures_are_computed_between_two_scrapes() -> None:
    before = Scrape(at=10.0, samples=parsed(BEFORE), unreachable=[])
    after = Scrape(at=12.0, samples=parsed(AFTER), unreachable=["No server answers at c."])
    found = figures(before, after)
    a, b = found.nodes
    assert (a.state, a.requests_per_second, a.commit_ms) == ("serving", 2.5, 2.0)
    assert (a.request_ms, a.loop_lag_ms) == (None, 11_000)
    # The node has restarted since then, so its counters are new.
    assert (b.state, b.requests_per_second) == ("stale", None)
    assert (found.mails, found.notices, found.jobs_in_trouble) == (1, None, ["mails"])
    headings, row, _, *rest = shown(found)
    assert headings.split()[:4] == ["NODE", "STATE", "REQ/S", "95"]
    assert row.split()[:4] == ["a", "serving", "2.5", "-"]
    assert "11 s" in row
    assert rest == [
        "Pending: 1 email, 2 push notifications.",
        "Failing jobs (see the log): mails.",
        "No server answers at c.",
    ]


def test_server_on_this_machine_is_shown(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    with place.serving() as (_, address):
        looks = ("--once", "--interval", "0.2")
        found = json.loads(run("top", "--url", address, *looks, "--json").stdout)
        (node,) = found["nodes"]
        assert node["state"] == "serving"
        assert node["cpu"] is not None
        assert found["mails"] == 0
        text = run("top", "--data-dir", str(place.data_dir), *looks).stdout  # It finds the port.
        assert node["node"] in text
    socket = tmp_path / "http"
    (place.data_dir / "tertulia.toml").write_text(f'unix_socket = "{socket}"\n')
    with place.program("serve") as process:
        assert process.stdout is not None
        assert "ready at" in process.stdout.readline()
        result = run("top", "--data-dir", str(place.data_dir), *looks)
        assert (result.exit_code, "serving" in result.stdout) == (0, True), result.output


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--url", "http://127.0.0.1:1"), 1, "Can't connect to http://127.0.0.1:1"),
        (("--url", "ftp://x"), 2, "isn't a URL"),
    ],
)
def test_unreachable_server_is_reported(
    arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    result = run("top", *arguments)
    assert result.exit_code == code
    assert sentence in result.stderr
