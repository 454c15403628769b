"""The commands in the README work. (`test_demo` runs its program.)"""

import re
import shlex
from pathlib import Path

from tests.cli.support import Place

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ELSEWHERE = {
    "make serve": "tests/cli/test_demo.py serves the demo",
    "uv tool install dist/tertulia-*.whl": "deploy/try_installing.py does, with the network",
}
"""Commands that aren't run here, and why."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_readme_commands_run(tmp_path: Path) -> None:
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
            process.communicate(timeout=60)
