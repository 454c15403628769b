"""OpenTelemetry spans, and counting how long requests wait for clients and the database.

Unless OpenTelemetry's environment variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, …) name a destination
and the extra `tracing` is installed, nothing is imported, and a span costs next to nothing.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, Protocol

logger = logging.getLogger("tertulia.tracing")

_PLACES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NOWHERE: Final = nullcontext(None)

Headers = Sequence[tuple[bytes, bytes]]


class TraceSpan(Protocol):
    """An OpenTelemetry span."""

    def set_attribute(self, key: str, value: Any) -> None: ...


class _Tracing:
    """The tracer, if tracing is on."""

    tracer: Any = None
    provider: Any = None


def is_wanted(variables: Mapping[str, str]) -> bool:
    """Whether the environment turns tracing on."""
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = variables.get("OTEL_TRACES_EXPORTER", "")
    return exporter in {"", "otlp"} and any(variables.get(name) for name in _PLACES)


def begin(variables: Mapping[str, str], node: str) -> None:
    """Start sending spans if the environment turns tracing on. `node` identifies this process."""
    if _Tracing.provider is not None or not is_wanted(variables):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        logger.warning(
            "tracing is on, but the extra `tracing` isn't installed",
            extra={"fields": {"reason": error}},
        )
        return
    begin_with(BatchSpanProcessor(OTLPSpanExporter()), node)
    logger.info("sending traces")


def begin_with(processor: Any, node: str) -> None:
    """Start passing spans to an OpenTelemetry span processor."""
    from opentelemetry.sdk.resources import (
        SERVICE_INSTANCE_ID,
        SERVICE_NAME,
        OTELResourceDetector,
        Resource,
    )
    from opentelemetry.sdk.trace import TracerProvider

    from tertulia import __version__

    attributes = {SERVICE_NAME: "tertulia", SERVICE_INSTANCE_ID: node}
    # The environment's attributes take precedence.
    resource = Resource.create({**attributes, **OTELResourceDetector().detect().attributes})
    _Tracing.provider = TracerProvider(resource=resource)
    _Tracing.provider.add_span_processor(processor)
    _Tracing.tracer = _Tracing.provider.get_tracer("tertulia", __version__)


def end() -> None:
    """Send the remaining spans and stop tracing. Takes up to several seconds."""
    provider, _Tracing.provider, _Tracing.tracer = _Tracing.provider, None, None
    if provider is not None:
        provider.shutdown()


def span(name: str, **attributes: Any) -> AbstractContextManager[TraceSpan | None]:
    """Return a context manager for a span within the current one. It yields None if tracing is
    off."""
    if _Tracing.tracer is None:
        return _NOWHERE
    result: AbstractContextManager[TraceSpan] = _Tracing.tracer.start_as_current_span(
        f"tertulia.{name}", attributes={f"tertulia.{key}": v for key, v in attributes.items()}
    )
    return result


def request_span(
    method: str, group: str, headers: Headers
) -> AbstractContextManager[TraceSpan | None]:
    """Return a context manager for the span of a request, which continues its client's trace, if
    any."""
    if _Tracing.tracer is None:
        return _NOWHERE
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if name in {b"traceparent", b"tracestate"}
    }
    result: AbstractContextManager[TraceSpan] = _Tracing.tracer.start_as_current_span(
        f"{method} {group}",
        context=TraceContextTextMapPropagator().extract(carrier),
        kind=SpanKind.SERVER,
        attributes={"http.request.method": method, "http.route": group},
    )
    return result


class Waits:
    """The seconds that a request has waited."""

    __slots__ = ("client", "database")

    def __init__(self) -> None:
        self.client = 0.0
        """Seconds of waiting for the client to send the request and receive the response."""
        self.database = 0.0
        """Seconds of waiting for reads and commits, including queuing. Concurrent waits are added
        up."""


_current: ContextVar[Waits | None] = ContextVar("waits", default=None)


def count_waits_in(waits: Waits) -> Token[Waits | None]:
    """Count the waits of the current task, and of those that it starts, in `waits`."""
    return _current.set(waits)


def stop_counting(token: Token[Waits | None]) -> None:
    """Undo `count_waits_in`."""
    _current.reset(token)


class DatabaseWait:
    """A context manager, for one use, that counts its time as waiting for the database."""

    __slots__ = ("_began",)

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        waits = _current.get()
        if waits is not None:
            waits.database += time.perf_counter() - self._began
