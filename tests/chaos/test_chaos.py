"""The short chaos run: a node crashes, another is paused, the database does both, and connections
are cut. Every response that clients got stays true."""

import subprocess
import sys

import pytest

from tests.chaos.cluster import ROOT
from tests.postgres import can_stand_alone

HANG_SECONDS = 600
STOP_SECONDS = 90


@pytest.mark.slow
def test_what_clients_are_told_is_true_despite_faults() -> None:
    """It runs in a separate process, like `make chaos`."""
    if not can_stand_alone():
        pytest.skip("no PostgreSQL of the machine: initdb is not installed")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos", "--short", "--seed", "1"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()  # It stops what it started.
            said, _ = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0, said
