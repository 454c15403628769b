"""Metrics in Prometheus' text format."""

import math
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tertulia.wire.metrics.families import Buckets, Family, NodeMetrics, Sample

_KINDS = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class _Collector(Collector):
    """Samples of several nodes, with the node's name as a label."""

    def __init__(self, nodes: Sequence[NodeMetrics]) -> None:
        self._nodes = nodes

    def collect(self) -> Iterable[Metric]:
        by_name: dict[str, Metric] = {}
        for of_node in self._nodes:
            for family in of_node.families:
                metric = by_name.get(family.name)
                if metric is None:
                    metric = _KINDS[family.kind](family.name, family.help)
                    by_name[family.name] = metric
                for sample in family.samples:
                    _add(metric, family, sample, {"node": of_node.node, **sample.labels})
        return by_name.values()


def _add(metric: Metric, family: Family, sample: Sample, labels: dict[str, str]) -> None:
    value = sample.value
    if isinstance(value, Buckets):
        for bound, count in _cumulative(value):
            metric.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, count)
        metric.add_sample(f"{family.name}_count", labels, sum(value.counts))
        metric.add_sample(f"{family.name}_sum", labels, value.total)
    else:
        ending = "_total" if family.kind == "counter" else ""
        metric.add_sample(family.name + ending, labels, value)


def _cumulative(buckets: Buckets) -> Iterator[tuple[str, int]]:
    count = 0
    for bound, more in zip((*buckets.bounds, math.inf), buckets.counts, strict=True):
        count += more
        yield ("+Inf" if bound == math.inf else f"{float(bound):g}"), count


def exposed(nodes: Sequence[NodeMetrics]) -> bytes:
    """Render the metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(nodes))
    return generate_latest(registry)
