"""What /metrics contains, and who can read it."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx
import msgspec
import pytest
import yaml  # type: ignore[import-untyped]  # has no types
from prometheus_client.parser import text_string_to_metric_families

from tertulia.app.composition import asgi
from tertulia.service.config import Config
from tertulia.store import backups
from tertulia.store.database import DatabaseUnavailable
from tertulia.wire.http.node import OTHERS, RequestMeasures
from tertulia.wire.metrics import families, page
from tertulia.wire.metrics.families import Family, NodeMetrics, Sample
from tertulia.wire.protocol.connections import ConnectionLimits, Connections, HttpGauges
from tertulia.wire.protocol.load import Load
from tests.support import Organization, new_organization, until

ROOT = Path(__file__).resolve().parents[2]


async def scraped(org: Organization) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Each sample by name and labels, without the node's own name."""
    response = await org.http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    own = ("node", org.node.membership.name)
    return {
        (sample.name, frozenset(sample.labels.items() - {own})): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


async def test_the_dashboard_and_the_alerts_use_existing_metrics(config: Config) -> None:
    """Each metric and label in `deploy/grafana.json` and `deploy/alerts.yaml` is in /metrics."""
    limits = ConnectionLimits(most=1, of_one_address=1, trusted="", least_rate=0)
    async with new_organization(
        msgspec.structs.replace(config, backup_to="/dev/null/backups")
    ) as org:
        await org["ann"].get("/users/me")
        server = HttpGauges(Load(1.0), Connections(limits), lambda: 5.0)
        org.node.gauges.append(server)
        text = (await org.http.get("/metrics")).text
    found = list(text_string_to_metric_families(text))
    ending = {"counter": "_total", "histogram": "_bucket"}
    names = {family.name + ending.get(family.type, "") for family in found}
    # Prometheus renames a sample's own `job` label, because it adds one itself.
    labels = {name for family in found for one in family.samples for name in one.labels}
    labels = {"exported_job" if name == "job" else name for name in labels} | {"le"}
    board = json.loads((ROOT / "deploy" / "grafana.json").read_text(encoding="utf-8"))
    targets = [target for panel in board["panels"] for target in panel.get("targets", ())]
    alerts = yaml.safe_load((ROOT / "deploy" / "alerts.yaml").read_text(encoding="utf-8"))
    rules = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    assert len(targets) > 20
    for expression in (*(target["expr"] for target in targets), *rules):
        asked = set(re.findall(r"\b(?:tertulia|process)_[a-z_]+", expression))
        assert asked or expression.startswith("up{")
        assert asked <= names, expression
        shown = re.findall(r"by \(([^)]*)\)", expression)
        assert {name.strip() for one in shown for name in one.split(",")} <= labels, expression
    for target in targets:
        shown = re.findall(r"by \(([^)]*)\)", target["expr"])
        used = {name.strip() for one in shown for name in one.split(",")}
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= used, target["expr"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_alerts_fire_when_they_should() -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool, of Prometheus, isn't installed")
    rules = ROOT / "deploy" / "alerts_test.yaml"
    tested = subprocess.run([promtool, "test", "rules", str(rules)], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr


async def test_the_last_backup_is_measured(config: Config) -> None:
    def figures(text: str) -> list[float]:
        found = re.findall(r"^tertulia_last_backup_\w+{[^}]*} (\S+)$", text, re.MULTILINE)
        return list(map(float, found))

    async with new_organization(
        msgspec.structs.replace(config, backup_to="/dev/null/backups")
    ) as org:
        assert figures((await org.http.get("/metrics")).text) == [0, 0]
        await org.node.store.write(lambda c: backups.set_last_backup(c, (1.5e9, 4096)))
        assert figures((await org.http.get("/metrics")).text) == [1.5e9, 4096]


async def test_backups_are_not_measured_if_they_are_off(org: Organization) -> None:
    assert "tertulia_last_backup" not in (await org.http.get("/metrics")).text


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


async def test_actions_are_counted(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ben = await org["ben"].register()
    waiting = asyncio.create_task(ben.events(block=True))
    await until(lambda: org.node.delivery.waiting == 1)
    before = await scraped(org)
    for number in range(3):
        await org["ann"].send("lounge", "t", f"{number}")
    (
        await org["ann"].post("/messages", type="channel", to="nowhere", topic="t", content="x")
    ).refused("STREAM_DOES_NOT_EXIST")
    await org.http.get("/api/v1/made-up-by-whoever-asks")
    await org.http.get("/made-up-too")
    await waiting
    after = await scraped(org)

    def grown(name: str, **labels: str) -> float:
        key = (name, labelled(**labels))
        return after[key] - before.get(key, 0)

    messages = "/api/v1/messages"
    assert grown("tertulia_http_requests_total", group=messages, status="200") == 3
    assert grown("tertulia_http_requests_total", group=messages, status="400") == 1
    assert grown("tertulia_http_request_seconds_count", group=messages) == 4
    assert grown("tertulia_http_request_seconds_bucket", group=messages, le="+Inf") == 4
    assert grown("tertulia_http_requests_total", group=OTHERS, status="404") == 2
    assert grown("tertulia_http_requests_total", group="/api/v1/events", status="200") == 1
    assert not any("made-up" in value for _, labels in after for _, value in labels)
    assert grown("tertulia_log_entries_total") >= 3
    assert grown("tertulia_commit_group_size_sum") >= 3
    assert grown("tertulia_commit_seconds_count") == grown(
        "tertulia_commit_lock_wait_seconds_count"
    )
    assert before["tertulia_waiting_polls", labelled()] == 1
    assert after["tertulia_waiting_polls", labelled()] == 0
    assert after["tertulia_event_queues", labelled()] == 1
    assert after["tertulia_log_position", labelled()] == org.node.log.durable
    assert after["tertulia_log_lag_entries", labelled()] == 0
    assert after["tertulia_mails_waiting", labelled()] >= 0
    assert after["tertulia_notices_waiting", labelled()] == 0
    assert after["tertulia_job_failures_total", labelled(job="mails")] == 0
    assert after["process_resident_memory_bytes", labelled()] > 1e6
    assert after["process_open_fds", labelled()] > 3


async def test_metrics_are_available_when_nothing_else_is(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(org.node.store, "read", away)
    org.node.log.freshness.newer = "it is too old"
    found = await scraped(org)
    assert found["tertulia_node_stale", labelled()] == 1
    assert ("tertulia_mails_waiting", labelled()) not in found
    assert found["tertulia_log_lag_seconds", labelled()] >= 0


READERS: tuple[tuple[str, Mapping[str, str], int], ...] = (
    ("127.0.0.1", {}, 200),
    ("::1", {}, 200),
    ("::ffff:127.0.0.1", {}, 200),
    ("10.1.2.3", {}, 200),
    ("10.1.2.3", {"X-Forwarded-For": "10.1.2.3"}, 200),
    ("192.0.2.7", {}, 403),
    ("2001:db8::7", {}, 403),
    # Through a local proxy that isn't trusted or doesn't forward the client's address.
    ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7"}, 403),
    ("127.0.0.1", {"X-Real-IP": "192.0.2.7"}, 403),
    ("127.0.0.1", {"Forwarded": "for=192.0.2.7"}, 403),
    ("127.0.0.1", {"Via": "1.1 proxy"}, 403),
    ("", {}, 403),
)
"""An address, headers, and the status of the response."""


async def test_who_can_read_metrics(org: Organization) -> None:
    node = org.node
    object.__setattr__(
        node, "config", msgspec.structs.replace(node.config, metrics_allowed="10.0.0.0/8,10.9.9.9")
    )
    for address, headers, status in READERS:
        transport = httpx.ASGITransport(app=asgi(node), client=(address, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://chat.test") as http:
            answer = await http.get("/metrics", headers=headers)
            assert answer.status_code == status, (address, headers)


async def test_a_scrape_reaches_all_processes_of_a_server(
    org: Organization,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(Config, "bus", tmp_path)
    other = NodeMetrics("other", [Family("tertulia_event_queues", "gauge", "", [Sample({}, 7)])])

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(msgspec.json.encode(other))
        writer.close()

    async def mumble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"{")
        writer.close()

    async with (
        await asyncio.start_unix_server(tell, tmp_path / "1.metrics"),
        await asyncio.start_unix_server(mumble, tmp_path / "2.metrics"),
    ):
        dead = await asyncio.start_unix_server(tell, tmp_path / "3.metrics")
        dead.close()
        async with page.shared_with_siblings(org.node):
            found = await scraped(org)
            assert found["tertulia_event_queues", labelled(node="other")] == 7
            assert found["tertulia_event_queues", labelled()] == 0
            assert not (tmp_path / "3.metrics").exists()
            assert caplog.text.count("could not get a worker's metrics") == 1
            # And this one tells the others its own.
            own = page._own_path(tmp_path)
            told = await page._fetch(own)
            assert told is not None
            assert told.node == org.node.membership.name
            names = {family.name for family in (await families.collect_metrics(org.node)).families}
            assert {family.name for family in told.families} == names
        assert not own.exists()


def test_groups_of_requests_are_the_starts_of_existing_paths() -> None:
    measures = RequestMeasures()
    measures.set_paths(
        "/api/v1", ["/messages/{id}", "/users", "/{any}"], ["/login/link", "/", "/{x}/y"]
    )
    groups = {
        "/api/v1/messages": "/api/v1/messages",
        "/api/v1/messages/7/reactions": "/api/v1/messages",
        "/api/v1/other": OTHERS,
        "/api/v1/": OTHERS,
        "/login": "/login",
        "/login/x": "/login",
        "/": "/",
        "/{x}": OTHERS,
        "": OTHERS,
    }
    assert {path: measures.group_of(path) for path in groups} == groups
