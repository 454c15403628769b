"""Shared by all cases: servers with organizations, the bare protocol, and load generators."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from bench import api, processes, serving
from bench.arithmetic import Rounds, Sample
from bench.datasets import Datasets, Made
from bench.limits import Commit, disk
from bench.organization import SMALL
from bench.serving import Generator, Running

PATIENT = "longest_wait_ms = 0\n"
"""Settings of a server that refuses no requests because of overload."""


@dataclass(frozen=True)
class Served:
    """A server with an organization."""

    server: Running
    made: Made

    @property
    def port(self) -> int:
        return self.server.port


class Bench:
    """One run of the benchmark."""

    def __init__(
        self, directory: Path, datasets: Datasets, cluster: str = "", *, quick: bool = False
    ) -> None:
        self.directory = directory
        self.datasets = datasets
        self.cluster = cluster
        """The URL of the measured PostgreSQL; empty for SQLite."""
        self.quick = quick
        self.rounds = 2 if quick else 5
        self.seconds = 0.35 if quick else 1.5
        """The duration of one job in one round."""
        self.most_connections = processes.room_for_connections()
        self._postmaster = _postmaster(cluster) if cluster else 0
        self._stack = ExitStack()
        self._shared: dict[str, Served] = {}
        self._generating = ExitStack()
        self._generators: dict[str, Generator] = {}

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        # Generators first, since they use the servers.
        self._generating.close()
        self._stack.close()

    def tell(self, text: str) -> None:
        """Print the progress."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    # Servers

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
        """A newly started server on a copy of the organization, after `prepare`, with this many
        workers and these settings. Unless `refuses` is set, it accepts requests regardless of how
        long they have to wait."""
        with self.datasets.copied(name) as made:
            prepare(made)
            path = Path(made.config.data_dir)
            (path / "tertulia.toml").write_text(settings + ("" if refuses else PATIENT))
            more = ("--port", "0", "--workers", str(workers))
            command = serving.server_command(path, made.config.database_url, *more)
            with serving.running(command, path / "serve.log") as server:
                yield Served(server, made)

    def served(self, name: str) -> Served:
        """Return a server with the organization, shared by all cases and otherwise idle."""
        if name not in self._shared:
            self._shared[name] = self._stack.enter_context(self.fresh(name))
        return self._shared[name]

    @contextmanager
    def joined(self, served: Served, number: int) -> Iterator[Running]:
        """Another newly started node on the server's database, which refuses no requests."""
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
        """The bare protocol with this server's responses."""
        answers = json.dumps(_answers(like))
        command = [sys.executable, "-m", "bench.bare"]
        with serving.running(command, self.directory / "bare.log", answers) as running:
            yield running

    def disk(self) -> Commit:
        """Bare commits next to the servers' databases."""
        return self._stack.enter_context(disk(self.directory, self.cluster))

    # Measurements

    def generator(self, name: str = "") -> Generator:
        """The generator with this name, shared by all cases. There are several, because one process
        can't have all connections. Only one works at a time."""
        if name not in self._generators:
            self._generators[name] = self._generating.enter_context(serving.generator())
        return self._generators[name]

    def gather(self, fleet: str, server: Running, people: Sequence[str], send: str) -> None:
        """Let these people wait at the server, as the fleet with this name in its own generator."""
        job = {"name": fleet, "port": server.port, "people": list(people), "send": send}
        self.generator(fleet).do("gather", **job)

    def part(self, fleet: str) -> None:
        """Disconnect the fleet."""
        self.generator(fleet).do("part", name=fleet)

    def fleet(self, server: Running, fleet: str, job: str) -> Sample:
        """Run a job of a fleet, and measure its cost for the server. For bursts, latencies are
        those of the last client."""
        return self._sample(
            self.generator(fleet), server, job, "last", name=fleet, seconds=self.seconds
        )

    def storm(
        self, server: Running, fleet: str, requests: Sequence[str], probe: str, seconds: float
    ) -> Sample:
        """Overload the server while the fleet waits."""
        job = {"port": server.port, "requests": list(requests), "probe": probe, "name": fleet}
        generator = self.generator(fleet)
        return self._sample(generator, server, "storm", "", seconds=seconds, **job)

    def _sample(
        self, generator: Generator, server: Running, job: str, latency: str, **arguments: Any
    ) -> Sample:
        used = server.cpu()
        result = generator.do(job, **arguments)
        used = server.cpu() - used
        series = {key: value for key, value in result.items() if isinstance(value, list)}
        return Sample(
            operations=result["operations"],
            seconds=result.get("seconds", 0.0),
            latencies=series.pop(latency, []),
            server_cpu=used,
            generator=result["generator"],
            more=series,
            counts={key: value for key, value in result.items() if isinstance(value, int | float)},
        )

    def requests(self, server: Running, *requests: str) -> Sample:
        """Send each request on its own connection, repeatedly."""
        return self.spread([server], *requests)

    def spread(
        self, servers: Sequence[Running], *requests: str, beside: Sequence[Running] = ()
    ) -> Sample:
        """Send requests to several servers in turn. Processor time is that of all of them. The
        sample's counts contain each server's (`node 0`, …), those of idle nodes (`beside 0`, …),
        and the PostgreSQL processes' (`database`)."""
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
        """Run all jobs in each round, in alternating order, so that disturbances affect all of
        them."""
        result: dict[str, list[Sample]] = {name: [] for name in jobs}
        for number in range(rounds or self.rounds):
            names = list(jobs)
            for name in names if number % 2 == 0 else reversed(names):
                result[name].append(jobs[name]())
        return {name: Rounds(samples) for name, samples in result.items()}


def _postmaster(cluster: str) -> int:
    with psycopg.connect(cluster) as connection:
        return processes.parent(connection.info.backend_pid)


def _answers(like: Served) -> dict[str, str]:
    """Return the server's responses for registering, waiting, and getting a message."""
    person = like.made.people[0]

    def asked(request: str) -> str:
        return api.asked(like.port, request).decode()

    registered = asked(api.listen(person))
    queue = json.loads(api.body_of(registered.encode()))
    sent = asked(api.send(person, SMALL, "waiting"))
    before, after = api.poll_around(person, queue["queue_id"])
    poll = f"{before.decode()}{queue['last_event_id']}{after.decode()}"
    return {
        "/register": registered,
        "/messages": sent,
        "/events": asked(poll),
        "/users/me": asked(api.empty(person)),
    }
