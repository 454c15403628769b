"""Optional tracing spans."""

import sys
from collections.abc import Iterator, Mapping

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tertulia import tracing
from tests.support import Organization

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracing.begin_with(SimpleSpanProcessor(exporter), "here")
    yield exporter
    tracing.end()


async def test_a_request_a_commit_and_a_read_are_spans(
    org: Organization, exporter: InMemorySpanExporter
) -> None:
    await org.channel("lounge", "ann")
    exporter.clear()
    header = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    message = {"type": "channel", "to": "lounge", "topic": "t", "content": "x"}
    (await org["ann"].raw("POST", "/messages", data=message, headers=header)).ok
    (await org["ann"].get("/messages", anchor="newest", num_before=1, num_after=0)).ok
    (await org["ann"].get("/messages/999")).refused()
    spans = exporter.get_finished_spans()
    by_name = {span.name: span for span in spans}
    sent = by_name["POST /api/v1/messages"]
    assert sent.context is not None
    assert f"{sent.context.trace_id:032x}" == TRACE
    assert dict(sent.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/api/v1/messages",
        "http.response.status_code": 200,
    }
    assert sent.resource.attributes["service.name"] == "tertulia"
    assert sent.resource.attributes["service.instance.id"] == "here"
    commit = by_name["tertulia.commit"]
    assert int(str((commit.attributes or {})["tertulia.commands"])) >= 1  # A job can share it.
    fetched = [span for span in spans if span.name == "GET /api/v1/messages"]
    assert [dict(s.attributes or {})["http.response.status_code"] for s in fetched] == [200, 400]
    reads = [span for span in spans if span.name == "tertulia.read"]
    parents = {span.parent.span_id for span in reads if span.parent is not None}
    assert fetched[0].context is not None
    assert fetched[0].context.span_id in parents


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "chat"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_the_environment_enables_tracing(variables: Mapping[str, str], wanted: bool) -> None:
    assert tracing.is_wanted(variables) is wanted


def test_tracing_that_is_enabled_but_not_installed_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    tracing.begin({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, "here")
    assert "the extra `tracing` isn't installed" in caplog.text
    with tracing.span("nothing") as span:
        assert span is None
