"""A setting is declared once, where it is kept."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "web" / "declared.py"


def test_everything_follows_from_the_declaration_of_a_boolean(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.added_settings", str(tmp_path), str(SCRIPT)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_client_has_the_declared_settings() -> None:
    """If not, run `make client`."""
    script = runpy.run_path(str(SCRIPT))
    assert script["FILE"].read_text() == script["written"]()
