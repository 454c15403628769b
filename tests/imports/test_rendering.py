"""The processes that render imported messages."""

import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import asyncio
from tertulia.imports.rendering import RenderPool
from tertulia.state.state import State

async def main():
    pool = RenderPool(State(), "", 1)
    await pool.render([(0, "**bold**")])
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
        time.sleep(0.05)
    assert not is_running(renderer)


def is_running(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
