"""What README shows works as it is written."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import zulip

from tests.cli.support import Place

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ELSEWHERE = {
    "make serve": "tests/cli/test_serve.py serves the demonstration",
    "uv tool install dist/tertulia-*.whl": "deploy/try_installing.py does, with the network",
}
"""Commands that are not run here, and why."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_every_command_is_one(tmp_path: Path) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = {line.partition("#")[0].strip() for line in lines} - {""}
    assert set(ELSEWHERE) <= commands
    for command in sorted(commands - set(ELSEWHERE)):
        program, name, *arguments = shlex.split(command)
        assert (program, name) == ("tertulia", "serve"), command
        assert arguments.pop(0) == "--data-dir"
        place = Place(tmp_path / arguments.pop(0))
        with place.program_from_nothing(name, *arguments, "--port", "0") as process:
            assert process.stdout is not None
            assert "waiting at http://" in process.stdout.readline()
            process.terminate()
            process.communicate(timeout=30)


def test_the_first_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = blocks("python")
    heard: list[Any] = []
    # It goes on for ever.
    monkeypatch.setattr(zulip.Client, "call_on_each_message", lambda _, told: heard.append(told))
    with Place(tmp_path / "data").serving("--demo") as (_, address):
        names: dict[str, Any] = {}
        exec(program.replace("http://127.0.0.1:9991", address), names)
        (told,) = heard
        found = names["iris"].get_messages(
            {"anchor": "newest", "num_before": 1, "num_after": 0, "narrow": []}
        )
        (message,) = found["messages"]
        assert message["content"] == "<p>Good morning!</p>"
        told(message)
