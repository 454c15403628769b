"""The command line, run in process or as a program of its own."""

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
# All commands and their flags are put together once, of which a program puts together those of the
# command that was typed alone: else it is nine tenths of what running one takes.
testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]  # imported there


@dataclass(frozen=True)
class Place:
    """Where an organization is: a directory and a database."""

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
        """What a command that succeeds prints as JSON."""
        result = self.run(command, *arguments, "--json")
        assert result.exit_code == 0, result.output
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    def found(self) -> dict[str, Any]:
        """Create an organization here; its owner is Ann. (What `init` does is done once, where
        there is nothing yet.)"""
        config = Config(data_dir=str(self.data_dir), database_url=self.database_url)
        if not databases.is_empty(config):
            return self._founded()
        return databases.copied_as("init", config, self._founded)

    def _founded(self) -> dict[str, Any]:
        return self.answer(
            "init",
            *("--org", "Example", "--email", "ann@example.com"),
            *("--full-name", "Ann", "--password", PASSWORD),
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
        """A `tertulia` process; killed at the end where it still runs."""
        program = HeardProgram([*arguments, *self.flags], environment())
        try:
            yield program
        finally:
            program.close()

    @contextmanager
    def program_from_nothing(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The same, loaded as on anybody's machine."""
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
        """A server that is ready, and its address."""
        with self.program("serve", "--port", "0", *arguments) as process:
            line = process.stdout.readline()
            assert "ready at http://" in line, process.communicate()
            yield process, line.split()[-1]


def command_line() -> Any:
    """All commands, as the parser has them."""
    return testing._get_command(APP)  # type: ignore[attr-defined]  # as above


def environment() -> dict[str, str]:
    """That of this process, for a program of ours."""
    return {**os.environ, "PYTHONPATH": str(Path(tertulia.__file__).parents[1])}


def run(*arguments: str, typed: str = "") -> Result:
    """Run the command line in process; a mistake of ours is raised."""
    # A command that gives way to the server would keep all tests after it waiting.
    with mock.patch.object(os, "nice"):
        return CliRunner().invoke(APP, list(arguments), input=typed, catch_exceptions=False)
