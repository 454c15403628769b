"""Push notifications: latency, rate, and cost."""

import base64
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bench import api, processes
from bench.arithmetic import Rounds, Sample, Target
from bench.cases import Case
from bench.cases.notices import turn_on
from bench.context import Bench, Served
from bench.datasets import COMPANY
from bench.organization import LARGE, SIZES
from bench.push_service import PushService, push_service
from bench.report import Line
from bench.serving import BenchError
from tertulia.outbound.web_push import encrypted

SETTINGS = """
external_url = "http://localhost"
web_push_networks = "127.0.0.1"
"""
DIRECT = 60
"""Direct messages per round. Each is sent after the push for the previous one has arrived."""
TO_ALL = 2
"""Messages to the whole channel. Each takes at least a quarter of a minute."""
FEW = 1000
"""The number of devices with QUICK=1."""
SOON = 1.0
"""The 99th percentile of the time until a push about a direct message is sent, in seconds."""
MOST_CPU = 0.5
"""The largest allowed multiple of the processor time of a direct message with its push: shared work
isn't repeated."""
MOST_MEMORY = 48 << 20
"""The most memory in bytes while 5,000 pushes are sent."""
PAYLOAD = b"x" * 300
ENCRYPTED = 200
"""Payloads per round."""


def _measure(bench: Bench) -> Iterator[Line]:
    with push_service() as service, bench.fresh(COMPANY, settings=SETTINGS) as served:
        turn_on(served, "enable_stream_push_notifications")
        # The first person sends.
        count = FEW if bench.quick else SIZES[LARGE] - 1
        _subscribe(served, service, range(1, 2))
        direct = _of_direct_messages(bench, service, served)
        yield direct
        _subscribe(served, service, range(2, count + 1))
        yield from _of_a_channel(bench, service, served, count, direct.cpu or 0.0)


def _of_direct_messages(bench: Bench, service: PushService, served: Served) -> Line:
    """Measure direct messages to one person with one device."""
    made = served.made
    values = {"type": "direct", "to": [made.organization.first_user_id + 1], "content": "Supper?"}
    request = api.form("POST", "/messages", made.people[0], values)
    rounds: list[Sample] = []
    _sent(served, request)
    service.arrivals(1)
    for _ in range(bench.rounds):
        sent: list[float] = []
        delays: list[float] = []
        used = processes.cpu(served.server.pid)
        for _ in range(DIRECT // 3 if bench.quick else DIRECT):
            service.forget()
            begun = time.perf_counter()
            _sent(served, request)
            sent.append(time.perf_counter() - begun)
            delays.append(service.arrivals(1)[0] - begun)
        used = processes.cpu(served.server.pid) - used
        rounds.append(Sample(len(delays), sum(delays), delays, used, more={"sent": sent}))
    result = Rounds(rounds)
    return Line(
        "pushes_direct",
        "from POST /messages to the push of a direct message",
        "ms",
        result.medians(),
        result.p99(),
        limit=result.medians("sent"),
        limit_title="response to the sender",
        cpu=result.cpu,
        targets=[Target("p99", result.p99(), SOON, "ms")],
    )


def _of_a_channel(
    bench: Bench, service: PushService, served: Served, count: int, of_direct: float
) -> Iterator[Line]:
    """Measure a message to a large channel, with a push for each subscriber."""
    request = api.send(served.made.people[0], LARGE, "topic")
    rounds: list[Sample] = []
    alone: list[float] = []
    grown = 0
    for _ in range(min(bench.rounds, TO_ALL)):
        alone.append(_encryption())
        service.forget()
        before = processes.forget_peak(served.server.pid)
        used = processes.cpu(served.server.pid)
        begun = time.perf_counter()
        _sent(served, request)
        came = service.arrivals(count)
        used = processes.cpu(served.server.pid) - used
        grown = max(grown, processes.peak(served.server.pid) - before)
        delays = [arrival - begun for arrival in came]
        rounds.append(Sample(count, came[-1] - came[0], delays, used))
    result = Rounds(rounds)
    title = f"push to {count:,} subscribers of a channel"
    yield Line(
        "pushes_rate",
        f"{title}, rate",
        "/s",
        result.rates(),
        limit=[1 / seconds for seconds in alone],
        limit_title="encrypted",
        cpu=result.cpu,
        targets=[
            Target("CPU relative to a direct message", result.cpu / of_direct, MOST_CPU, "x"),
            Target("peak memory", grown, MOST_MEMORY, "MiB"),
        ],
    )
    yield Line(
        "pushes_channel",
        f"{title}, from POST /messages to each push",
        "ms",
        result.medians(),
        result.p99(),
    )


def _encryption() -> float:
    """Return the processor time to encrypt one payload on this machine, in seconds."""
    point = _point()
    begun = time.process_time()
    for _ in range(ENCRYPTED):
        encrypted(PAYLOAD, point, b"0123456789abcdef")
    return (time.process_time() - begun) / ENCRYPTED


def _subscribe(served: Served, service: PushService, numbers: Sequence[int]) -> None:
    """Register a device for each of these people."""
    keys = {"p256dh": _text(_point()), "auth": _text(b"0123456789abcdef")}
    people = served.made.people

    def asked(number: int) -> bytes:
        values = {"endpoint": service.endpoint(number), **keys}
        request = api.form("POST", "/push_subscriptions", people[number], values)
        return api.asked(served.port, request)

    with ThreadPoolExecutor(16) as pool:
        for answer in pool.map(asked, numbers):
            if b'"success"' not in answer:
                raise BenchError(f"a device could not be added: {answer[:200]!r}")


def _point() -> bytes:
    """Return a public key."""
    return (
        ec.generate_private_key(ec.SECP256R1())
        .public_key()
        .public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    )


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _sent(served: Served, request: str) -> None:
    answer = json.loads(api.body_of(api.asked(served.port, request)))
    if answer["result"] != "success":
        raise BenchError(f"a message was refused: {answer}")


CASE = Case("pushes", "push notifications: latency, rate, and cost", _measure)
