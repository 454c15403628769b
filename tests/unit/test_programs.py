"""A server that is forked is to its tests what a program is that was started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import HeardProgram, Program

SOURCE = str(Path(__file__).parents[2] / "src")


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "TERM": "dumb", **more}


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["--version"], {}),
        (["serve", "--help"], {"COLUMNS": "70"}),
        (["serve", "--port", "many"], {}),
        (["nodes", "--data-dir", "/nowhere"], {}),
        (["config"], {"TERTULIA_PORT": "7777"}),
        (["config"], {"TERTULIA_PORT": "none"}),
    ],
    ids=str,
)
def test_it_says_the_same_and_ends_alike(
    words: list[str], more: dict[str, str], tmp_path: Path
) -> None:
    written = tmp_path / "written"
    with written.open("wb") as file:
        program = Program(words, environment(**more), file.fileno())
        status = program.wait(60)
    real = subprocess.run(
        [sys.executable, "-m", "tertulia", *words],
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    assert (status, written.read_text()) == (real.returncode, real.stdout.decode())
    assert program.poll() == status


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_it_gets_signals(number: int, status: int, tmp_path: Path) -> None:
    log, place = tmp_path / "log", tmp_path / "data"
    words = ["serve", "--host", "127.0.0.1", "--port", "0", "--data-dir", str(place)]
    with log.open("wb") as file:
        program = Program(words, environment(PYTHONUNBUFFERED="1"), file.fileno())
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0)
        assert program.poll() is None
        while "waiting at" not in log.read_text():
            with pytest.raises(subprocess.TimeoutExpired):
                program.wait(0.02)
        program.send_signal(number)
        assert program.wait(60) == status
        program.send_signal(number)  # Of no consequence.
    finally:
        program.kill()


def test_what_it_says_is_read_apart_from_its_errors() -> None:
    program = HeardProgram(["config", "--help"], environment())
    said, errors = program.communicate(60)
    assert "config" in said
    assert errors == ""
    program.close()
    program = HeardProgram(["serve", "--port", "many"], environment())
    said, errors = program.communicate(60)
    assert (program.returncode, said) == (2, "")
    assert "many" in errors
    program.close()


def test_one_that_does_not_end_in_time_is_ended(tmp_path: Path) -> None:
    words = ["serve", "--host", "127.0.0.1", "--port", "0", "--data-dir", str(tmp_path / "data")]
    program = HeardProgram(words, environment(PYTHONUNBUFFERED="1"))
    assert "waiting at" in program.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        program.communicate(0.02)
    assert program.wait() == -signal.SIGKILL
    program.close()
