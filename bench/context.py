"""What a case has at hand: servers on organizations, the bare protocol, generators."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from bench import asking, processes, serving
from bench.arithmetic import Rounds, Sample
from bench.datasets import Datasets, Made
from bench.limits import Commit, disk
from bench.organization import SMALL
from bench.serving import Generator, Running

PATIENT = "longest_wait_ms = 0\n"
"""The settings of a server that refuses no request because there is too much to do."""


@dataclass(frozen=True)
class Served:
    """A server on an organization."""

    server: Running
    made: Made

    @property
    def port(self) -> int:
        return self.server.port


class Bench:
    """One run of the bench."""

    def __init__(
        self, directory: Path, datasets: Datasets, cluster: str = "", *, quick: bool = False
    ) -> None:
        self.directory = directory
        self.datasets = datasets
        self.cluster = cluster
        """The URL of the PostgreSQL that is measured; empty for SQLite."""
        self.quick = quick
        self.rounds = 2 if quick else 5
        self.seconds = 0.35 if quick else 1.5
        """How long one job of one round takes."""
        self.most_connections = processes.room_for_connections()
        self._postmaster = _postmaster(cluster) if cluster else 0
        self._stack = ExitStack()
        self._shared: dict[str, Served] = {}
        self._generating = ExitStack()
        self._generators: dict[str, Generator] = {}

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        # Those first who would miss the servers.
        self._generating.close()
        self._stack.close()

    def tell(self, text: str) -> None:
        """Say how far it has come."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    # What is measured

    @contextmanager
    def fresh(
        self,
        name: str,
        workers: int = 1,
        *,
        refuses: bool = True,
        settings: str = "",
        prepare: Callable[[Made], None] = lambda _: None,
    ) -> Iterator[Served]:
        """A server of one's own on the organization, as it was `prepare`d, just started, with so
        many workers and these settings. Unless it `refuses`, it takes requests however long they
        have to wait."""
        with self.datasets.copied(name) as made:
            prepare(made)
            path = Path(made.config.data_dir)
            (path / "tertulia.toml").write_text(settings + ("" if refuses else PATIENT))
            more = ("--port", "0", "--workers", str(workers))
            command = serving.server_command(path, made.config.database_url, *more)
            with serving.running(command, path / "serve.log") as server:
                yield Served(server, made)

    def served(self, name: str) -> Served:
        """A server on the organization that all cases share; it has nothing to do otherwise."""
        if name not in self._shared:
            self._shared[name] = self._stack.enter_context(self.fresh(name))
        return self._shared[name]

    @contextmanager
    def joined(self, served: Served, number: int) -> Iterator[Running]:
        """One more node on the database of the server, just started, which refuses nothing."""
        path = Path(f"{served.made.config.data_dir}-node-{number}")
        path.mkdir(mode=0o700)
        try:
            shutil.copy(Path(served.made.config.data_dir) / "secret", path)
            (path / "tertulia.toml").write_text(PATIENT)
            command = serving.server_command(path, served.made.config.database_url)
            with serving.running(command, path / "serve.log") as server:
                yield server
        finally:
            shutil.rmtree(path)

    @contextmanager
    def bare(self, like: Served) -> Iterator[Running]:
        """The bare protocol, with the very answers that this server gives."""
        answers = json.dumps(_answers(like))
        command = [sys.executable, "-m", "bench.bare"]
        with serving.running(command, self.directory / "bare.log", answers) as running:
            yield running

    def disk(self) -> Commit:
        """Bare commits beside the servers' databases, until the end."""
        return self._stack.enter_context(disk(self.directory, self.cluster))

    # How it is measured

    def generator(self, name: str = "") -> Generator:
        """The generator of that name, which all cases share. There are several because one
        process cannot have all the connections; one of them works at a time."""
        if name not in self._generators:
            self._generators[name] = self._generating.enter_context(serving.generator())
        return self._generators[name]

    def gather(self, fleet: str, server: Running, people: Sequence[str], send: str) -> None:
        """Let so many wait at the server, as the fleet of that name, in its own generator."""
        job = {"name": fleet, "port": server.port, "people": list(people), "send": send}
        self.generator(fleet).do("gather", **job)

    def part(self, fleet: str) -> None:
        """Let the fleet hang up."""
        self.generator(fleet).do("part", name=fleet)

    def fleet(self, server: Running, fleet: str, job: str) -> Sample:
        """One job of a fleet, and what it cost the server. For bursts, the latencies are those
        of the last."""
        return self._sample(
            self.generator(fleet), server, job, "last", name=fleet, seconds=self.seconds
        )

    def storm(
        self, server: Running, fleet: str, requests: Sequence[str], probe: str, seconds: float
    ) -> Sample:
        """Far more than the server can do, while the fleet waits."""
        job = {"port": server.port, "requests": list(requests), "probe": probe, "name": fleet}
        generator = self.generator(fleet)
        return self._sample(generator, server, "storm", "", seconds=seconds, **job)

    def _sample(
        self, generator: Generator, server: Running, job: str, latency: str, **arguments: Any
    ) -> Sample:
        used = server.cpu()
        found = generator.do(job, **arguments)
        used = server.cpu() - used
        series = {key: value for key, value in found.items() if isinstance(value, list)}
        return Sample(
            operations=found["operations"],
            seconds=found.get("seconds", 0.0),
            latencies=series.pop(latency, []),
            server_cpu=used,
            generator=found["generator"],
            more=series,
            counts={key: value for key, value in found.items() if isinstance(value, int | float)},
        )

    def requests(self, server: Running, *requests: str) -> Sample:
        """Each request on a connection of its own, again and again."""
        return self.spread([server], *requests)

    def spread(
        self, servers: Sequence[Running], *requests: str, beside: Sequence[Running] = ()
    ) -> Sample:
        """The same, to several servers by turns. The processor time is that of all of them. In the
        sample's counts is that of each (`node 0`, …), of those that run beside them (`beside 0`,
        …), and of the database's processes, where it is PostgreSQL (`database`)."""
        job = {"ports": [server.port for server in servers], "requests": list(requests)}
        family = processes.family(self._postmaster) if self._postmaster else []
        everybody = [*servers, *beside]
        before = [server.cpu() for server in everybody]
        of_database = processes.cpu_of(family)
        sample = self._sample(
            self.generator(), servers[0], "requests", "latencies", seconds=self.seconds, **job
        )
        used = [server.cpu() - earlier for server, earlier in zip(everybody, before, strict=True)]
        of_beside = used[len(servers) :]
        del used[len(servers) :]
        counts = {f"node {number}": seconds for number, seconds in enumerate(used)}
        counts |= {f"beside {number}": seconds for number, seconds in enumerate(of_beside)}
        counts["database"] = sum(
            seconds - of_database[pid] for pid, seconds in processes.cpu_of(family).items()
        )
        return replace(sample, server_cpu=sum(used), counts={**sample.counts, **counts})

    def interleaved(
        self, jobs: Mapping[str, Callable[[], Sample]], rounds: int = 0
    ) -> dict[str, Rounds]:
        """All jobs in each round, forwards and backwards by turns: what disturbs the machine
        for a while disturbs all of them."""
        found: dict[str, list[Sample]] = {name: [] for name in jobs}
        for number in range(rounds or self.rounds):
            names = list(jobs)
            for name in names if number % 2 == 0 else reversed(names):
                found[name].append(jobs[name]())
        return {name: Rounds(samples) for name, samples in found.items()}


def _postmaster(cluster: str) -> int:
    with psycopg.connect(cluster) as connection:
        return processes.parent(connection.info.backend_pid)


def _answers(like: Served) -> dict[str, str]:
    """What the server answers to one who registers, waits, and gets a message."""
    person = like.made.people[0]

    def asked(request: str) -> str:
        return asking.asked(like.port, request).decode()

    registered = asked(asking.listen(person))
    queue = json.loads(asking.body_of(registered.encode()))
    sent = asked(asking.send(person, SMALL, "waiting"))
    before, after = asking.poll_around(person, queue["queue_id"])
    poll = f"{before.decode()}{queue['last_event_id']}{after.decode()}"
    return {
        "/register": registered,
        "/messages": sent,
        "/events": asked(poll),
        "/users/me": asked(asking.empty(person)),
    }
