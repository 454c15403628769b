"""The processes that render imported messages."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tertulia.imports import rendering
from tertulia.state.state import State

PROGRAM = """
import asyncio
from tertulia.imports.rendering import RenderPool
from tertulia.state.state import State

async def main():
    pool = RenderPool(State(), "", 1)
    await pool.render([(0, "**bold**", None)])
    print(*pool._pool._processes, flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_they_end_when_the_import_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "rendering.py"
    script.write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    renderer = Path("/proc") / process.stdout.readline().strip()
    assert renderer.exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while is_running(renderer) and time.monotonic() < deadline:
        time.sleep(0.05)  # Another process can only be polled.
    assert not is_running(renderer)


@pytest.mark.anyio
async def test_texts_that_take_too_long_there_are_rendered_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This happens on servers that are busy with other work too."""
    monkeypatch.setattr(rendering, "BATCH_SECONDS", 0.0)
    pool = rendering.RenderPool(State(), "", 1)
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        before = rounds
        found = await pool.render([(0, "*a*", None)] * 200)
    finally:
        counting.cancel()
        pool.close()
    assert {one.html for one in found} == {"<p><em>a</em></p>"}
    assert rounds - before > 200


def is_running(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
