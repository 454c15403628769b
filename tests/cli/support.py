"""Run commands in this process, or as separate programs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from typer import testing
from typer.testing import CliRunner, Result

import tertulia
from tertulia.cli import application
from tertulia.service.config import Config
from tests import databases
from tests.programs import HeardProgram

PASSWORD = "correct horse"
APP = application()
# Building the parser of all commands takes most of the time of a run, so it's built once. A program
# builds only the parser of the command that was typed.
testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]  # imported there


@dataclass(frozen=True)
class Place:
    """A data directory and a database."""

    data_dir: Path
    database_url: str = ""

    @property
    def flags(self) -> list[str]:
        url = ["--database-url", self.database_url] if self.database_url else []
        return ["--data-dir", str(self.data_dir), *url]

    def run(self, command: str, *arguments: str, typed: str = "") -> Result:
        """Run a command here, in process."""
        return run(command, *self.flags, *arguments, typed=typed)

    def answer(self, command: str, *arguments: str) -> dict[str, Any]:
        """Run a command with --json, and return the result."""
        result = self.run(command, *arguments, "--json")
        assert result.exit_code == 0, result.output
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    @property
    def config(self) -> Config:
        """The configuration that its commands use."""
        return Config(data_dir=str(self.data_dir), database_url=self.database_url)

    def create_organization(self) -> dict[str, Any]:
        """Create an organization, whose owner is Ann. If the database is empty, it's copied from
        one that was created before."""
        config = self.config
        if not databases.is_empty(config):
            return self._founded()
        return databases.copied_as("init", config, self._founded)

    def _founded(self) -> dict[str, Any]:
        return self.answer(
            "init",
            *("--org", "Example", "--email", "ann@example.com"),
            *("--full-name", "Ann", "--password", PASSWORD, "--show-key"),
        )

    def add(self, name: str, role: str = "member") -> dict[str, Any]:
        """Create a user `Name`, at name@example.com."""
        return self.answer(
            "create-user",
            *("--email", f"{name}@example.com", "--full-name", name.title()),
            *("--role", role, "--password", PASSWORD),
        )

    @contextmanager
    def program(self, *arguments: str) -> Iterator[HeardProgram]:
        """Run a `tertulia` process, which is killed at the end of the context."""
        program = HeardProgram([*arguments, *self.flags], environment())
        try:
            yield program
        finally:
            program.close()

    @contextmanager
    def program_from_nothing(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run a `tertulia` process without loading modules in advance."""
        command = [sys.executable, "-m", "tertulia", *arguments, *self.flags]
        with subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def serving(self, *arguments: str) -> Iterator[tuple[HeardProgram, str]]:
        """Run a server, and return its address when it's ready."""
        with self.program("serve", "--port", "0", *arguments) as process:
            line = process.stdout.readline()
            assert "ready at http://" in line, process.communicate()
            yield process, line.split()[-1]


def command_line() -> Any:
    """The parser of all commands."""
    return testing._get_command(APP)  # type: ignore[attr-defined]  # as above


def environment() -> dict[str, str]:
    """Environment variables for a `tertulia` process."""
    return {**os.environ, "PYTHONPATH": str(Path(tertulia.__file__).parents[1])}


def run(*arguments: str, typed: str = "") -> Result:
    """Run a command in this process. Unexpected errors are raised."""
    # A lower priority would stay for all tests that follow.
    with mock.patch.object(os, "nice"):
        return CliRunner().invoke(APP, list(arguments), input=typed, catch_exceptions=False)
