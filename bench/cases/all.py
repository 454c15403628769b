"""Every case, in the order in which they are measured and shown."""

from bench.cases import (
    delivering,
    fetching,
    growth,
    holding,
    memory,
    nodes,
    notices,
    overload,
    pushes,
    reading,
    rendering,
    sending,
    starting,
    waiting,
    webhooks,
    workers,
)

CASES = (
    memory.CASE,
    starting.CASE,
    sending.CASE,
    notices.CASE,
    pushes.CASE,
    webhooks.CASE,
    nodes.CASE,
    delivering.CASE,
    waiting.CASE,
    workers.CASE,
    overload.CASE,
    fetching.CASE,
    reading.CASE,
    growth.CASE,
    holding.CASE,
    rendering.CASE,
)
