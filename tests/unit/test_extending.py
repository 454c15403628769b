"""The worked examples of docs/extending.md, made in a copy of the source and used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEP = re.compile(
    r"^In `([^`]+)`, (?:at the end|after `([^`]+)`):\n\n```(?:python)?\n(.*?)```",
    re.MULTILINE | re.DOTALL,
)
TEST = re.compile(r"^```python\n(async def test_.*?)```", re.MULTILINE | re.DOTALL)
PROGRAM = """
import asyncio

from tertulia.service.config import Config
from tests.conftest import OTHERS
from tests.support import Organization, new_organization

{use}

async def main():
    async with new_organization(Config(data_dir="{data_dir}"), others=OTHERS) as org:
        await {name}(org)

asyncio.run(main())
"""
USES = {
    "Add an endpoint": """
async def test_folders_are_counted(org: Organization) -> None:
    await org["ann"].post("/channel_folders/create", name="Work", description="")
    assert (await org["ben"].get("/channel_folders/count")).ok["count"] == 1
""",
    "Add a setting": """
async def test_the_setting_can_be_changed(org: Organization) -> None:
    listener = await org["ann"].register()
    assert listener.data["realm_quiet_halls"] is False
    (await org["ann"].patch("/realm", quiet_halls=True)).ok
    (event,) = await listener.events()
    assert (event["property"], event["value"]) == ("quiet_halls", True)
""",
}


def sections() -> dict[str, str]:
    """The examples by their headings."""
    _, *parts = (ROOT / "docs" / "extending.md").read_text().split("\n## ")
    return {part.partition("\n")[0]: part for part in parts}


def apply(example: str, root: Path) -> None:
    """Make the example's changes to the source below `root`."""
    steps = STEP.findall(example)
    assert steps
    for file, line, code in steps:
        path = root / file
        text = path.read_text()
        if line:
            assert text.count(f"{line}\n") == 1, (file, line)
            text = text.replace(f"{line}\n", f"{line}\n{code}")
        else:
            text += f"\n\n{code}"
        path.write_text(text)


@pytest.mark.parametrize("heading", sections())
def test_a_worked_example_works(heading: str, tmp_path: Path) -> None:
    example = sections()[heading]
    shutil.copytree(
        ROOT / "src" / "tertulia",
        tmp_path / "src" / "tertulia",
        ignore=shutil.ignore_patterns("__pycache__", "web", "manual"),
    )
    apply(example, tmp_path)
    use = USES.get(heading) or "\n".join(TEST.findall(example))
    name = use.split("async def ")[1].partition("(")[0]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(use=use, name=name, data_dir=tmp_path / "data")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
