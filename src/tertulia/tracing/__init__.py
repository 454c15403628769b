"""Spans of OpenTelemetry, for an operator who wants to see where a request's time goes.

Nothing is loaded, and a span costs next to nothing, unless OpenTelemetry's own variables
(`OTEL_EXPORTER_OTLP_ENDPOINT`, …) say where spans go and `tertulia[tracing]` is installed.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

logger = logging.getLogger("tertulia.tracing")

_PLACES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NOWHERE: Final = nullcontext(None)

Headers = Sequence[tuple[bytes, bytes]]


class Span(Protocol):
    """A stretch of time, as OpenTelemetry has it."""

    def set_attribute(self, key: str, value: Any) -> None: ...


class _Tracing:
    """The tracer, where there is one."""

    tracer: Any = None
    provider: Any = None


def is_wanted(variables: Mapping[str, str]) -> bool:
    """Whether the environment says that spans go somewhere."""
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = variables.get("OTEL_TRACES_EXPORTER", "")
    return exporter in {"", "otlp"} and any(variables.get(name) for name in _PLACES)


def begin(variables: Mapping[str, str], node: str) -> None:
    """Send spans from now on, if the environment wants it. `node` is this process among others."""
    if _Tracing.provider is not None or not is_wanted(variables):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        logger.warning(
            "spans are wanted and cannot be made: install tertulia[tracing]",
            extra={"fields": {"reason": error}},
        )
        return
    begin_with(BatchSpanProcessor(OTLPSpanExporter()), node)
    logger.info("spans are sent")


def begin_with(processor: Any, node: str) -> None:
    """Have an OpenTelemetry span processor get the spans from now on."""
    from opentelemetry.sdk.resources import (
        SERVICE_INSTANCE_ID,
        SERVICE_NAME,
        OTELResourceDetector,
        Resource,
    )
    from opentelemetry.sdk.trace import TracerProvider

    from tertulia import __version__

    own = {SERVICE_NAME: "tertulia", SERVICE_INSTANCE_ID: node}
    # What the environment says of the service prevails.
    resource = Resource.create({**own, **OTELResourceDetector().detect().attributes})
    _Tracing.provider = TracerProvider(resource=resource)
    _Tracing.provider.add_span_processor(processor)
    _Tracing.tracer = _Tracing.provider.get_tracer("tertulia", __version__)


def end() -> None:
    """Send what is left, and make no spans any more. Takes some seconds at most."""
    provider, _Tracing.provider, _Tracing.tracer = _Tracing.provider, None, None
    if provider is not None:
        provider.shutdown()


def span(name: str, **attributes: Any) -> AbstractContextManager[Span | None]:
    """A span for the time of the context, which is None where nobody wants spans. It is a part of
    the one around it."""
    if _Tracing.tracer is None:
        return _NOWHERE
    found: AbstractContextManager[Span] = _Tracing.tracer.start_as_current_span(
        f"tertulia.{name}", attributes={f"tertulia.{key}": v for key, v in attributes.items()}
    )
    return found


def request_span(method: str, group: str, headers: Headers) -> AbstractContextManager[Span | None]:
    """The same for a request, which goes on with its client's trace if it says one."""
    if _Tracing.tracer is None:
        return _NOWHERE
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if name in {b"traceparent", b"tracestate"}
    }
    found: AbstractContextManager[Span] = _Tracing.tracer.start_as_current_span(
        f"{method} {group}",
        context=TraceContextTextMapPropagator().extract(carrier),
        kind=SpanKind.SERVER,
        attributes={"http.request.method": method, "http.route": group},
    )
    return found
