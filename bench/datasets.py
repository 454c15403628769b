"""The benchmark's organizations by name, built once and copied for changes.

With SQLite they are kept in a directory between runs, with names that depend on the code that makes
them. With PostgreSQL they're made again, because its private server ends with the benchmark.
"""

import asyncio
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from bench import archive, organization
from bench.archive import Archive
from bench.organization import Organization
from bench.serving import ROOT
from tertulia.service.config import Config

_DESCRIPTION = "made.json"
_MAKERS = (
    "bench/organization.py",
    "bench/archive.py",
    "bench/filling.py",
    "src/tertulia/store/migrations.py",
)
"""Code that determines the datasets."""


@dataclass(frozen=True)
class Shape:
    """The size of an organization."""

    people: int
    channels: int
    messages: int


TEAM, COMPANY, OLD_COMPANY, CITY = "team", "company", "old-company", "city"
SHAPES: Final = {
    TEAM: Shape(16, 8, 1_000),
    COMPANY: Shape(5_200, 517, 7_000),
    OLD_COMPANY: Shape(5_200, 517, 1_000_000),
    CITY: Shape(50_000, 517, 7_000),
}
"""The organizations also have the channels of `organization.SIZES`."""


@dataclass(frozen=True)
class Made:
    """An organization for one server at a time, which changes it."""

    organization: Organization
    archive: Archive
    config: Config

    @property
    def people(self) -> list[str]:
        """Return Authorization headers. The first person is in every channel, and the next ones in
        fewer and fewer."""
        return self.organization.people

    @property
    def usual(self) -> str:
        """Return the header of a person in the middle of `people`."""
        return self.people[len(self.people) // 2]


class Datasets:
    """The datasets in a directory or, with a cluster's URL, their databases in the cluster."""

    def __init__(self, directory: Path, cluster: str = "") -> None:
        self._directory = directory
        self._cluster = cluster
        self._kept = directory / ("sets-postgresql" if cluster else "sets")
        if cluster:
            shutil.rmtree(self._kept, ignore_errors=True)
        self._count = 0

    @contextmanager
    def copied(self, name: str) -> Iterator[Made]:
        """A copy of the dataset, within the context."""
        kept = self._built(name)
        self._count += 1
        copy = f"copy-{self._count}"
        directory = self._directory / copy
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(kept, directory)
        url = ""
        if self._cluster:
            self._database(copy, kept.name)
            url = self._url(copy)
        described = json.loads((kept / _DESCRIPTION).read_text())
        try:
            yield Made(
                Organization(**described["organization"]),
                Archive(**described["archive"]),
                Config(data_dir=str(directory), database_url=url),
            )
        finally:
            shutil.rmtree(directory)
            if self._cluster:
                self._drop(copy)

    @contextmanager
    def empty(self) -> Iterator[Config]:
        """A place for a new organization, within the context."""
        self._count += 1
        copy = f"copy-{self._count}"
        directory = self._directory / copy
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        if self._cluster:
            self._database(copy, "template0")
        try:
            url = self._url(copy) if self._cluster else ""
            yield Config(data_dir=str(directory), database_url=url)
        finally:
            shutil.rmtree(directory)
            if self._cluster:
                self._drop(copy)

    def _built(self, name: str) -> Path:
        shape = SHAPES[name]
        key = hashlib.sha256(repr(shape).encode())
        for maker in _MAKERS:
            key.update((ROOT / maker).read_bytes())
        kept = self._kept / f"{name}-{key.hexdigest()[:12]}"
        if kept.exists():
            return kept
        for outdated in self._kept.glob(f"{name}-*"):
            if outdated.name.rpartition("-")[0] in {name, f"unfinished-{name}"}:
                shutil.rmtree(outdated)
        started = time.perf_counter()
        building = self._kept / f"unfinished-{kept.name}"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        if self._cluster:
            self._database(kept.name, "template0")
        config = Config(
            data_dir=str(building), database_url=self._url(kept.name) if self._cluster else ""
        )
        made = asyncio.run(organization.create(config, shape.people, shape.channels))
        filled = archive.add_messages(config, made, shape.messages)
        described = {"organization": asdict(made), "archive": asdict(filled)}
        (building / _DESCRIPTION).write_text(json.dumps(described))
        building.rename(kept)
        took = time.perf_counter() - started
        sys.stderr.write(
            f"built {name}: {shape.people:,} people, {shape.channels + 3} channels,"
            f" {shape.messages:,} messages in {took:.1f} s\n"
        )
        return kept

    def _url(self, database: str) -> str:
        return urlunsplit(urlsplit(self._cluster)._replace(path=f"/{database}"))

    def _database(self, name: str, template: str) -> None:
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._run(command.format(sql.Identifier(name), sql.Identifier(template)))

    def _drop(self, name: str) -> None:
        self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _run(self, command: sql.Composed) -> None:
        with psycopg.connect(self._cluster, autocommit=True) as connection:
            connection.execute(command)
